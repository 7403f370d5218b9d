# The first window of ns-2.35's Agent/SCTP: how many packets with DATA leave before the first SACK.
#
#   ns first-window.tcl | grep -c -e '^+.*-D '

set ns [new Simulator]
set s [$ns node]
set r [$ns node]
$ns duplex-link $s $r 10Mb 50ms DropTail
Trace set show_sctphdr_ 1
$ns trace-queue $s $r stdout
set tx [new Agent/SCTP]
set rx [new Agent/SCTP]
$ns attach-agent $s $tx
$ns attach-agent $r $rx
$ns connect $tx $rx
set ftp [new Application/FTP]
$ftp attach-agent $tx
$ns at 0 "$ftp start"
# DATA leaves after three round trips.
$ns at 0.39 "exit 0"
$ns run
