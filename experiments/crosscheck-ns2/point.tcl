# One point of the cross-check in ns-2.35: one greedy transfer over one path, or over two disjoint ones.
#
#   ns point.tcl proto=cmt rate=10 rtt=110 loss=1 rbuf=65536 queue=50 rate2=10 rtt2=110 loss2=1 time=30 seed=3
#
# Prints one line: "goodput_bit_s cpu_s units", units being DATA chunks or segments that arrived in order.
# Names and units of the arguments are those of the grid (README.md). Tracing is off; neither SCTP nor TCP has a counter
# of what it delivered, so the acknowledgements that leave the receiver are watched (watch=0 for timing runs).
# lost and lost2 name files with the numbers, from 0, of the packets of each path that are lost in place of a share;
# trace names one that gets all packets (packets.py). The transfer begins at start=0 and lasts for time. At start=64 ns-2's clock, a double, keeps its grain for a minute.

array set a {
    proto sctp  rate 10 rtt 110 loss 0  rate2 0 rtt2 0 loss2 0
    rbuf 65536  queue 50  window 20  size 1000  delack 0  rtx 4  pf 0
    time 30  start 0  seed 1  watch 1  streams 1  ssthresh 65536  burst 1
    lost {}  lost2 {}  trace {}
}
foreach arg $argv {
    if {![regexp {^([a-z0-9]+)=(.*)$} $arg -> key value] || ![info exists a($key)]} {
        puts stderr "point.tcl: unknown argument '$arg'; known: [lsort [array names a]]"
        exit 2
    }
    set a($key) $value
}
set is_sctp [expr {$a(proto) in {sctp cmt}}]
set two [expr {$a(rate2) > 0}]

# Independent replications: the same substream number of every stream. Seeds 1, 2, 3 would be correlated.
proc substream {rng} {
    global a
    for {set i 1} {$i < $a(seed)} {incr i} { $rng next-substream }
}
substream $defaultRNG

Trace set show_sctphdr_ 1
set ns [new Simulator]
Queue set limit_ $a(queue)

# Loss of what enters the link, in the direction of the data: a share of it, or the packets of a list.
proc lossy {from to percent lost} {
    global ns
    if {$lost ne ""} {
        set f [open $lost]
        set numbers [read $f]
        close $f
        if {[llength $numbers] == 0} return
        set model [new ErrorModel/List]
        $model droplist $numbers
    } else {
        if {$percent <= 0} return
        set rng [new RNG]
        substream $rng
        set draw [new RandomVariable/Uniform]
        $draw use-rng $rng
        set model [new ErrorModel]
        $model set rate_ [expr {$percent / 100.0}]
        $model ranvar $draw
    }
    $model unit pkt
    $model drop-target [new Agent/Null]
    $ns lossmodel $model $from $to
}

# A link each way; answers the two nodes.
proc path {rate rtt loss lost} {
    global ns
    set s [$ns node]
    set r [$ns node]
    $ns duplex-link $s $r ${rate}Mb [expr {$rtt / 2.0}]ms DropTail
    lossy $s $r $loss $lost
    return [list $s $r]
}

if {$is_sctp} {
    Agent/SCTP set initialRwnd_ $a(rbuf)
    Agent/SCTP set initialSsthresh_ $a(ssthresh)
    Agent/SCTP set numOutStreams_ $a(streams)
    Agent/SCTP set useMaxBurst_ $a(burst)
    if {$a(proto) eq "cmt"} {
        Agent/SCTP/CMT set useCmtPF_ $a(pf)
        Agent/SCTP/CMT set eCmtRtxPolicy_ $a(rtx)
        set class Agent/SCTP/CMT
    } else {
        set class Agent/SCTP
    }
    set tx [new $class]
    set rx [new $class]
} else {
    Agent/TCP set window_ $a(window)
    Agent/TCP set packetSize_ $a(size)
    array set senders {tahoe Agent/TCP reno Agent/TCP/Reno newreno Agent/TCP/Newreno sack1 Agent/TCP/Sack1}
    set tx [new $senders($a(proto))]
    set sink [expr {$a(proto) eq "sack1" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]
    if {$a(delack)} { append sink /DelAck }
    set rx [new $sink]
}

set watched {}
if {$two} {
    # A multihomed host is a core node, which holds the agent, and one node per interface.
    set s_core [$ns node]
    set r_core [$ns node]
    foreach {n suffix} {0 "" 1 2} {
        lassign [path $a(rate$suffix) $a(rtt$suffix) $a(loss$suffix) $a(lost$suffix)] s($n) r($n)
        $ns multihome-add-interface $s_core $s($n)
        $ns multihome-add-interface $r_core $r($n)
        lappend watched $r($n) $s($n)
    }
    $ns multihome-attach-agent $s_core $tx
    $ns multihome-attach-agent $r_core $rx
    $ns connect $tx $rx
    $tx set-primary-destination $r(0)
    if {$a(proto) eq "cmt"} {
        # The loss rates that RTX-LOSSRATE reads.
        $tx set-destination-lossrate $r(0) [expr {$a(loss) / 100.0}]
        $tx set-destination-lossrate $r(1) [expr {$a(loss2) / 100.0}]
    }
} else {
    lassign [path $a(rate) $a(rtt) $a(loss) $a(lost)] s0 r0
    $ns attach-agent $s0 $tx
    $ns attach-agent $r0 $rx
    $ns connect $tx $rx
    lappend watched $r0 $s0
}

set ftp [new Application/FTP]
$ftp attach-agent $tx
$ns at $a(start) "$ftp start"

if {$a(watch)} {
    set dir [expr {[info exists env(TMPDIR)] ? $env(TMPDIR) : "/tmp"}]
    set acks [file join $dir crosscheck-[pid].acks]
    # The highest number of the acknowledgements that entered a link back: cumulative TSN or segment.
    set what [expr {$is_sctp ? {$7 ~ /S/ && $12 > top { top = $12 }} : {$5 == "ack" && $11 > top { top = $11 }}}]
    set sink_file [open "|awk {\$1 == \"+\" && $what END { print top + 0 }} > $acks" w]
    foreach {from to} $watched { $ns trace-queue $from $to $sink_file }
}

if {$a(trace) ne ""} {
    # watched holds the nodes at the receiving end and at the sending end of each path.
    set trace_file [open $a(trace) w]
    foreach {from to} $watched {
        $ns trace-queue $from $to $trace_file
        $ns trace-queue $to $from $trace_file
    }
    puts $trace_file "paths [lmap node $watched {$node id}]"
}

proc finish {} {
    global a is_sctp sink_file acks trace_file
    if {$a(trace) ne ""} { close $trace_file }
    set units 0
    if {$a(watch)} {
        close $sink_file
        set f [open $acks]
        set units [gets $f]
        close $f
        file delete $acks
    }
    set size [expr {$is_sctp ? 1452 : $a(size)}]
    puts [format "%.0f %.3f %d" [expr {$units * $size * 8.0 / $a(time)}] [cpu] $units]
    exit 0
}

# User and system time of this process so far, in seconds.
proc cpu {} {
    set f [open /proc/self/stat]
    set fields [split [lindex [split [read $f] ")"] end]]
    close $f
    return [expr {([lindex $fields 12] + [lindex $fields 13]) / 100.0}]
}

$ns at [expr {$a(start) + $a(time)}] finish
$ns run
