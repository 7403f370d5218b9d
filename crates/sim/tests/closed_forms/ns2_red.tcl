# RED in ns-2.35 under Poisson traffic of 1000-byte packets on 8 Mbit/s: the share dropped and the mean queue.
#   ns ns2_red.tcl SUBSTREAM LOAD VARIANT      VARIANT: packets, eager, steep, bytes or defaults
lassign $argv substream load variant
set seconds 500.0

if {$variant != "defaults"} {
    Queue/RED set thresh_ 5
    Queue/RED set maxthresh_ 15
    Queue/RED set q_weight_ 0.002
    Queue/RED set mean_pktsize_ 1000
    if {$variant != "bytes"} {
        Queue/RED set bytes_ false
        Queue/RED set queue_in_bytes_ false
    }
}
if {$variant == "eager"} { Queue/RED set wait_ false }
if {$variant == "steep"} { Queue/RED set gentle_ false }

set random [new RNG]
for {set i 1} {$i < $substream} {incr i} { $random next-substream }

set ns [new Simulator]
set from [$ns node]
set to [$ns node]
$ns simplex-link $from $to 8Mb 10ms RED
$ns queue-limit $from $to 1000
set monitor [$ns monitor-queue $from $to ""]

set agent [new Agent/UDP]
$agent set packetSize_ 1000
$ns attach-agent $from $agent
set sink [new Agent/Null]
$ns attach-agent $to $sink
$ns connect $agent $sink

# Bursts of one packet make an exponential source a Poisson one.
set source [new Application/Traffic/Exponential]
$source set packetSize_ 1000
$source set burst_time_ 0
$source set idle_time_ [expr 0.001 / $load]
$source set rate_ 1000000Mb
$source use-rng $random
$source attach-agent $agent

proc finish {} {
    global monitor seconds
    set dropped [expr double([$monitor set pdrops_]) / [$monitor set parrivals_]]
    puts "$dropped [expr [[$monitor get-pkts-integrator] set sum_] / $seconds]"
    exit 0
}
$ns at 0.0 "$source start"
$ns at $seconds finish
$ns run
