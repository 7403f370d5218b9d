#!/usr/bin/env python3
"""Runs what stands on standard input in a kernel of qemu.sh, prints its output and ends with its exit code.

    qemu_job.py SOCKET

SOCKET is a serial port behind which interop/linux/init.sh runs one line after the other: here the commands in base64.
"""
import base64
import socket
import sys

END = b"#exit "


def main():
    port = socket.socket(socket.AF_UNIX)
    port.connect(sys.argv[1])
    port.sendall(base64.b64encode(sys.stdin.buffer.read()) + b"\n")
    for line in port.makefile("rb"):
        if line.startswith(END):
            return int(line[len(END) :])
        sys.stdout.buffer.write(line)
        sys.stdout.flush()
    print("the kernel has gone")
    return 1


sys.exit(main())
