# Speed: one CMT association over two 100 Mbit/s paths, 20 ms round trip, 1 MB window, tracing off.
# Prints "simulated_s cpu_s", or with the arguments "30 goodput" "simulated_s bit/s".
Queue set limit_ 1000
Agent/SCTP set initialRwnd_ 1048576
Agent/SCTP set numOutStreams_ 64
Agent/SCTP/CMT set useCmtPF_ 0
source [file join [file dirname [info script]] common.tcl]
set ns [new Simulator]
set tx [new Agent/SCTP/CMT]
set rx [new Agent/SCTP/CMT]
two_hosts $ns $tx $rx [list {100Mb 10ms} {100Mb 10ms}]
bulk $ns $tx 0.0
finish_at $ns [lindex [concat $argv 30] 0]
$ns run
