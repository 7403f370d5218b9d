//! What the properties of slices once found, as small as it got. In words, for a case is long: what happens, to which
//! side (`c` the client, `s` the server), and which of the packets under way.

use super::{Op, need_not_be_asked, same_as_bytes};

const FOUND: [&str; 2] = [
    "
    deliver:s:0 send:s:0:1:ordered:ever send:s:0:1:ordered:ever send:c:0:1:ordered:ever deliver:c:0 deliver:s:0
    deliver:c:429965527906355 deliver:c:5449586654819695529 deliver:s:10996419450001054486
    lose:c:1793030165736074532 shutdown:s deliver:c:555527776540435795 lose:s:2363763848529253119 pass:1338
    deliver:s:11001765690767086040 forget pass:1480 deliver:c:11116795606570210102 deliver:c:18014897945632434424
    deliver:s:8482065420075035426 deliver:s:1619599590336427099 deliver:c:5532307653844528339
    deliver:s:2888969150036332720 shutdown:c deliver:s:13679567474963579220 lose:c:6475762540891869631 forget
    deliver:s:11689590417339007283 pass:1152 repeat:c:1025693639815987971 forget forget
    deliver:s:12189767780836429591 deliver:s:2787132424760169567 deliver:c:12083432564455036147
    send:c:0:3299:ordered:395 deliver:c:4658126618237360105 deliver:c:17197855075650785978
    deliver:s:5216018450850617902 deliver:c:7206087906835869761 deliver:s:18225747582364137631 path
    deliver:c:17397725354273113059 deliver:s:12178877931012287216 deliver:s:17817827784116712475
    deliver:c:6177448489517438422 deliver:c:5216621036737291500 lose:s:14507318579684885139 pass:715
    lose:s:16338830025321690577 deliver:c:15778793463952879083 send:c:1:1437:ordered:ever pass:320
    deliver:s:16460662964571690219 deliver:c:14435220287991036154 deliver:s:18254931257373874513 read
    deliver:s:15968537855607237806 send:s:0:5992:ordered:251 send:s:0:5974:unordered:ever pass:809
    deliver:c:5029586649718797466 deliver:c:9568330210040002 lose:s:4561795266340104832
    deliver:s:9627352180083958332 pass:1446
    ",
    "
    deliver:s:0 deliver:c:0 deliver:s:0 deliver:c:0 send:s:0:3517:ordered:1 deliver:c:0 pass:1000 pass:1000
    deliver:c:0 deliver:s:0 deliver:c:0 forget path deliver:s:0 deliver:c:0 pass:98 deliver:c:0 pass:766 deliver:s:0
    pass:136 deliver:s:0 deliver:c:0 deliver:s:0 lose:c:0 deliver:c:0 deliver:s:0 deliver:s:0 deliver:c:0
    deliver:s:0 deliver:c:0 send:c:0:2060:ordered:ever send:c:0:1:ordered:ever send:c:0:1:ordered:ever
    send:s:0:2345:ordered:1 deliver:s:4611686018427387904 pass:413 send:s:0:2345:ordered:ever
    send:c:0:1:ordered:ever pass:587 pass:69 send:c:0:1:ordered:ever send:s:0:4677:ordered:ever
    send:c:0:1:ordered:ever send:s:0:1173:ordered:ever pass:931 forget send:c:0:1:ordered:ever
    deliver:c:4611686018427387904 pass:389 send:c:0:1:ordered:ever pass:611 send:c:0:1:ordered:ever deliver:c:0
    deliver:c:4611686018427387904 deliver:c:4611686018427387904 pass:928 send:c:0:1:ordered:ever
    send:c:0:1:ordered:ever shutdown:c lose:s:0 deliver:c:0 deliver:s:0 deliver:s:0 deliver:s:0 deliver:s:0
    deliver:s:0 deliver:s:0 deliver:s:0 read deliver:s:0 deliver:s:0 pass:1072 pass:1 deliver:c:1844674407370955162
    deliver:s:0
    ",
];

fn op(word: &str) -> Op {
    let parts: Vec<&str> = word.split(':').collect();
    let number = |text: &str| text.parse::<u64>().expect(word);
    match parts[..] {
        ["send", side, stream, len, order, life] => Op::Send {
            server: side == "s",
            stream: number(stream) as u16,
            len: number(len) as usize,
            unordered: order == "unordered",
            lifetime_ms: (life != "ever").then(|| number(life)),
        },
        ["deliver", side, which] => Op::Deliver { server: side == "s", which: number(which) },
        ["lose", side, which] => Op::Lose { server: side == "s", which: number(which) },
        ["repeat", side, which] => Op::Repeat { server: side == "s", which: number(which) },
        ["pass", time] => Op::Pass { ms: number(time) },
        ["shutdown", side] => Op::Shutdown { server: side == "s" },
        ["read"] => Op::Read,
        ["path"] => Op::AddPath,
        ["forget"] => Op::Forget,
        _ => panic!("{word}"),
    }
}

#[test]
fn what_was_found() {
    for case in FOUND {
        let ops: Vec<Op> = case.split_whitespace().map(op).collect();
        assert!(ops.len() > 60);
        same_as_bytes(&ops).expect("slices do what their bytes do");
        need_not_be_asked(&ops).expect("who has nothing to send need not be asked");
    }
}
