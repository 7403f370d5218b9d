# Speed: one association over one 100 Mbit/s path, 20 ms round trip, 256 KB window, tracing off.
# Prints "simulated_s cpu_s", or with the arguments "30 goodput" "simulated_s bit/s". SSNs have 16 bits and ns-2 stalls when they wrap out of order: 64 streams keep away.
Queue set limit_ 1000
Agent/SCTP set initialRwnd_ 262144
Agent/SCTP set numOutStreams_ 64
source [file join [file dirname [info script]] common.tcl]
set ns [new Simulator]
set s [$ns node]
set r [$ns node]
$ns duplex-link $s $r 100Mb 10ms DropTail
set tx [new Agent/SCTP]
set rx [new Agent/SCTP]
$ns attach-agent $s $tx
$ns attach-agent $r $rx
$ns connect $tx $rx
watch $ns [list [list $r $s]]
bulk $ns $tx 0.0
finish_at $ns [lindex [concat $argv 30] 0]
$ns run
