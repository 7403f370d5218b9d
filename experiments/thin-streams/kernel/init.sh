#!/bin/bash
# /init of the kernels of run.py: the machine's files are its root, read-only. words=FOLDER on the command line names what
# run.py has prepared: the modules, the links of all streams, and messages' jobs; what comes of it goes there too.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mkdir -p /run/netns /run/jobs
folder=$(sed -n 's/.*\<jobs=\([^ ]*\).*/\1/p' /proc/cmdline)
mount -t hostfs -o "$folder" none /run/jobs
cd /run/jobs || poweroff -f
{
    while read -r module; do insmod "$module"; done <modules
    echo 1 >/proc/sys/net/ipv4/ip_forward
    ip link set lo up
    ip -batch links
    for batch in *.ip; do ip -n "${batch%.ip}" -batch "$batch"; done
    tc -batch open.tc
    ./messages jobs /run/jobs && echo done >state
    tc -s qdisc show >queues
} >log 2>&1
poweroff -f
