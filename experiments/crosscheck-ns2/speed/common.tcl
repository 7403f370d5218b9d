# What the speed scripts share.

# A greedy transfer from a time on.
proc bulk {ns agent start} {
    set ftp [new Application/FTP]
    $ftp attach-agent $agent
    $ns at $start "$ftp start"
}

# The variable rate of RTX-CSI: every 200 ms a packet size between 100 and 200 bytes, the mean rate kept.
proc vary {ns cbr} {
    $cbr set packetSize_ [expr {int(rand() * 101) + 100}]
    $ns after 0.2 "vary $ns $cbr"
}

# Two multihomed hosts and a link for each {rate delay}.
proc two_hosts {ns tx rx links} {
    set s_core [$ns node]
    set r_core [$ns node]
    foreach link $links {
        lassign $link rate delay
        set s [$ns node]
        set r [$ns node]
        $ns duplex-link $s $r $rate $delay DropTail
        $ns multihome-add-interface $s_core $s
        $ns multihome-add-interface $r_core $r
        lappend far $r
        lappend back [list $r $s]
    }
    watch $ns $back
    $ns multihome-attach-agent $s_core $tx
    $ns multihome-attach-agent $r_core $rx
    $ns connect $tx $rx
    $tx set-primary-destination [lindex $far 0]
}

# User and system time of this process so far, in seconds.
proc cpu {} {
    set f [open /proc/self/stat]
    set fields [split [lindex [split [read $f] ")"] end]]
    close $f
    return [expr {([lindex $fields 12] + [lindex $fields 13]) / 100.0}]
}

# Writes what SACKs that enter these links, one {from to} each, acknowledge; tracing costs time, so only on demand:
# with a second argument "goodput" a script prints "simulated_s bit/s" and no time.
proc watch {ns links} {
    global argv sacks
    if {[lindex $argv 1] ne "goodput"} return
    Trace set show_sctphdr_ 1
    set sacks [open "|awk {\$1 == \"+\" && \$7 ~ /S/ && \$12 > top { top = \$12 } END { print top + 0 }} > [sacks_file]" w]
    foreach link $links { $ns trace-queue [lindex $link 0] [lindex $link 1] $sacks }
}

proc sacks_file {} {
    global env
    return [file join [expr {[info exists env(TMPDIR)] ? $env(TMPDIR) : "/tmp"}] speed-[pid].sacks]
}

proc report {seconds} {
    global sacks
    if {![info exists sacks]} {
        puts "$seconds [cpu]"
        exit 0
    }
    close $sacks
    set f [open [sacks_file]]
    puts "$seconds [expr {[gets $f] * 1452 * 8.0 / $seconds}]"
    close $f
    file delete [sacks_file]
    exit 0
}

proc finish_at {ns seconds} {
    $ns at $seconds "report $seconds"
}
