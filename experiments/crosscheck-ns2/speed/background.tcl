# Speed: the dual dumbbell of RTX-CSI (Cao et al. 2012) with its background, 64 KB window, tracing off.
# Prints "simulated_s cpu_s", or with the arguments "30 goodput" "simulated_s bit/s".
Queue set limit_ 50
Agent/SCTP set initialRwnd_ 65536
Agent/SCTP/CMT set useCmtPF_ 0
Agent/TCP set packetSize_ 1380
source [file join [file dirname [info script]] common.tcl]
set ns [new Simulator]
set tx [new Agent/SCTP/CMT]
set rx [new Agent/SCTP/CMT]
set s_core [$ns node]
set r_core [$ns node]
foreach n {0 1} {
    set left [$ns node]
    set right [$ns node]
    $ns duplex-link $left $right 10Mb 45ms DropTail
    set s($n) [$ns node]
    set r($n) [$ns node]
    $ns duplex-link $s($n) $left 100Mb 5ms DropTail
    $ns duplex-link $right $r($n) 100Mb 5ms DropTail
    set right_of($n) $right
    $ns multihome-add-interface $s_core $s($n)
    $ns multihome-add-interface $r_core $r($n)
    foreach i {1 2 3 4 5} {
        set a [$ns node]
        set b [$ns node]
        $ns duplex-link $a $left 100Mb 5ms DropTail
        $ns duplex-link $right $b 100Mb 5ms DropTail
        if {$i < 5} {
            set tcp [new Agent/TCP/Reno]
            set sink [new Agent/TCPSink]
            $ns attach-agent $a $tcp
            $ns attach-agent $b $sink
            $ns connect $tcp $sink
            bulk $ns $tcp [expr {1.0 + 0.02 * $i}]
        } else {
            set udp [new Agent/UDP]
            set null [new Agent/Null]
            $ns attach-agent $a $udp
            $ns attach-agent $b $null
            $ns connect $udp $null
            set cbr [new Application/Traffic/CBR]
            $cbr attach-agent $udp
            $ns at 1.0 "$cbr start"
            if {$n == 1} { vary $ns $cbr }
        }
    }
}
$ns multihome-attach-agent $s_core $tx
$ns multihome-attach-agent $r_core $rx
$ns connect $tx $rx
$tx set-primary-destination $r(0)
watch $ns [list [list $r(0) $right_of(0)] [list $r(1) $right_of(1)]]
bulk $ns $tx 0.5
finish_at $ns [lindex [concat $argv 30] 0]
$ns run
