#!/usr/bin/env bash
# Has tshark read captures of ours: no malformed packet, no bad checksum, nothing it calls an error.
#
#   scripts/check-pcap.sh [FILE...]     needs tshark and python3; PORTS="9899 7001" names the UDP ports in the files
#
# Without files it makes some: a transfer over two emulated paths with loss, and one over IPv6, captured at both ends.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

need captures tshark
scratch
trap clean_up EXIT

# transfer NAME HOST PORT SEND-FLAG...: sends a file, both ends capture into $work/NAME-*.pcapng.
transfer() {
    local name=$1 host=$2 port=$3 recv
    shift 3
    start "$name-recv" "$anabranch" recv "anabranch://$host:$port" "file:$work/copy" --once --pcap "$work/$name-recv.pcapng"
    recv=$started
    sleep 0.5
    start "$name-send" "$anabranch" send "file:$work/file" "anabranch://$host:$port" --mode file \
        --pcap "$work/$name-send.pcapng" "$@"
    finish "$name-send" "$started" 60
    finish "$name-recv" "$recv" 10
    cmp "$work/file" "$work/copy" || die "the file that came out differs"
}

make_captures() {
    local relay_1 relay_2 v6=(::1)
    need captures python3
    build
    head -c 2000000 /dev/urandom >"$work/file"
    relay_1=$(free_port 1) relay_2=$(free_port 2)
    start emulate "$anabranch" emulate \
        --path "name one listen 127.0.0.1:$relay_1 to 127.0.0.1:9899 rate 20mbit delay 10ms loss 2%" \
        --path "name two listen 127.0.0.1:$relay_2 to 127.0.0.1:9899 rate 10mbit delay 30ms loss 1%"
    sleep 0.3
    transfer two-paths 127.0.0.1 9899 --path "127.0.0.1,via=127.0.0.1:$relay_1" --path "127.0.0.2,via=127.0.0.1:$relay_2"
    ports=(9899 "$relay_1" "$relay_2")
    if python3 -c "import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).bind(('${v6[0]}', 0))" 2>/dev/null; then
        transfer ipv6 '[::1]' 9899
    else
        echo "SKIPPED captures-ipv6: this machine has no IPv6"
    fi
    files=("$work"/*.pcapng)
}

read -ra ports <<<"${PORTS:-9899}"
files=("$@")
[ ${#files[@]} -gt 0 ] || make_captures

decode=()
for port in "${ports[@]}"; do
    decode+=(-d "udp.port==$port,sctp")
done
wrong=0
for file in "${files[@]}"; do
    # One line per packet: the checksums (1 good, 0 bad), what is malformed, the severest remark (8388608 is an error),
    # the protocols found, the chunks.
    tshark -r "$file" "${decode[@]}" -o "sctp.checksum:CRC 32c" -o udp.check_checksum:TRUE -o ip.check_checksum:TRUE \
        -T fields -E "separator=|" -e frame.number -e sctp.checksum.status -e udp.checksum.status \
        -e ip.checksum.status -e _ws.malformed -e _ws.expert.severity -e frame.protocols -e sctp.chunk_type \
        >"$work/fields" 2>"$work/tshark.log" || {
        cat "$work/tshark.log" >&2
        die "tshark cannot read $file"
    }
    awk -F'|' -v file="$(basename "$file")" '
        { packets++; n = split($8, c, ","); for (i = 1; i <= n; i++) chunks[c[i]]++ }
        $7 !~ /sctp/ { print "WRONG: " file " packet " $1 ": not read as SCTP but as " $7; bad++; next }
        $2 !~ /^1/ || ($3 != "" && $3 !~ /^1/) || ($4 != "" && $4 !~ /^1/) {
            print "WRONG: " file " packet " $1 ": bad checksum (sctp " $2 ", udp " $3 ", ip " $4 ")"; bad++ }
        $5 != "" { print "WRONG: " file " packet " $1 ": malformed"; bad++ }
        { n = split($6, s, ","); for (i = 1; i <= n; i++) if (s[i] >= 8388608) {
            print "WRONG: " file " packet " $1 ": tshark calls it an error"; bad++ } }
        END {
            for (k in chunks) list = list " " k ":" chunks[k]
            print file ": " packets + 0 " packets, chunks by type" list
            exit (bad > 0 || packets == 0)
        }' "$work/fields" || wrong=1
done
[ $wrong = 0 ] || exit 1
echo "tshark found no malformed packet and no bad checksum"
