//! Kernel references and physical limits: TCP, MPTCP, raw UDP (plain, sendmmsg, GSO/GRO), memcpy, CRC32c.
use crate::drive::bufsize;
use crate::util::*;
use std::time::Instant;

unsafe fn addr(port: u16) -> libc::sockaddr_in {
    let mut a: libc::sockaddr_in = std::mem::zeroed();
    a.sin_family = libc::AF_INET as u16;
    a.sin_port = port.to_be();
    a.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    a
}

unsafe fn stream_pair(proto: i32) -> (i32, i32) {
    let l = libc::socket(libc::AF_INET, libc::SOCK_STREAM, proto);
    assert!(l >= 0);
    let mut a = addr(0);
    let sz = std::mem::size_of_val(&a) as u32;
    assert_eq!(libc::bind(l, &a as *const _ as *const _, sz), 0);
    assert_eq!(libc::listen(l, 1), 0);
    let mut sl = sz;
    libc::getsockname(l, &mut a as *mut _ as *mut _, &mut sl);
    let c = libc::socket(libc::AF_INET, libc::SOCK_STREAM, proto);
    if let Ok(cc) = std::env::var("TCP_CC") {
        assert_eq!(libc::setsockopt(c, libc::IPPROTO_TCP, libc::TCP_CONGESTION, cc.as_ptr() as *const _, cc.len() as u32), 0);
    }
    assert_eq!(libc::connect(c, &a as *const _ as *const _, sz), 0);
    let s = libc::accept(l, std::ptr::null_mut(), std::ptr::null_mut());
    assert!(s >= 0);
    let one = 1i32;
    for f in [c, s] {
        libc::setsockopt(f, libc::IPPROTO_TCP, libc::TCP_NODELAY, &one as *const _ as *const _, 4);
    }
    (c, s)
}

pub fn proto(name: &str) -> i32 {
    match name {
        "tcp" => 0,
        "mptcp" => 262,
        _ => panic!(),
    }
}

pub fn stream_bulk(test: &str, name: &str, size: usize, total: usize) {
    unsafe {
        let (c, s) = stream_pair(proto(name));
        let n = total / size;
        let (c0, w0) = (cpu_us(), Instant::now());
        let th = std::thread::spawn(move || {
            let mut buf = vec![0u8; 65536];
            let mut got = 0usize;
            while got < n * size {
                let r = libc::read(s, buf.as_mut_ptr() as *mut _, buf.len());
                assert!(r > 0);
                got += r as usize;
            }
        });
        let msg = vec![0x5au8; size];
        for _ in 0..n {
            let mut o = 0;
            while o < size {
                let r = libc::write(c, msg.as_ptr().add(o) as *const _, size - o);
                assert!(r > 0);
                o += r as usize;
            }
        }
        th.join().unwrap();
        let (c1, w) = (cpu_us(), w0.elapsed().as_secs_f64());
        bulk_rows(test, name, "lo", size, (n * size) as f64, n as f64, (c1.0 - c0.0, c1.1 - c0.1), w);
    }
}

unsafe fn read_n(fd: i32, buf: &mut [u8]) {
    let mut o = 0;
    while o < buf.len() {
        let r = libc::read(fd, buf.as_mut_ptr().add(o) as *mut _, buf.len() - o);
        assert!(r > 0);
        o += r as usize;
    }
}

pub fn stream_ping(name: &str, size: usize, rounds: usize) {
    unsafe {
        let (c, s) = if name == "udp-raw" { udp_pair() } else { stream_pair(proto(name)) };
        let th = std::thread::spawn(move || {
            let mut b = vec![0u8; size];
            for _ in 0..rounds {
                read_n(s, &mut b);
                assert_eq!(libc::write(s, b.as_ptr() as *const _, size), size as isize);
            }
        });
        let mut b = vec![1u8; size];
        let mut lat = Vec::with_capacity(rounds);
        let c0 = cpu();
        for _ in 0..rounds {
            let t = Instant::now();
            assert_eq!(libc::write(c, b.as_ptr() as *const _, size), size as isize);
            read_n(c, &mut b);
            lat.push(t.elapsed().as_nanos() as u64);
        }
        let cc = cpu() - c0;
        th.join().unwrap();
        lat_rows("pingpong", name, "lo", size, &mut lat, cc);
    }
}

unsafe fn udp_pair() -> (i32, i32) {
    let mk = || {
        let f = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let a = addr(0);
        assert_eq!(libc::bind(f, &a as *const _ as *const _, 16), 0);
        bufsize(f);
        f
    };
    let (a, b) = (mk(), mk());
    let conn = |x: i32, y: i32| {
        let mut s = addr(0);
        let mut l = 16u32;
        libc::getsockname(y, &mut s as *mut _ as *mut _, &mut l);
        assert_eq!(libc::connect(x, &s as *const _ as *const _, 16), 0);
    };
    conn(a, b);
    conn(b, a);
    (a, b)
}

/// One thread, send a burst then receive it: no loss, no wake-ups, only the kernel's cost per byte.
pub fn udp_raw(mode: &str, size: usize, total: usize) {
    const NB: usize = 64;
    unsafe {
        let (a, b) = udp_pair();
        let n = total / size;
        let seg = size as i32;
        let gso_n = (65507 / size).min(64);
        if mode == "gso" {
            assert_eq!(libc::setsockopt(a, 17, 103, &seg as *const _ as *const _, 4), 0);
            let one = 1i32;
            assert_eq!(libc::setsockopt(b, 17, 104, &one as *const _ as *const _, 4), 0);
        }
        let src = vec![0x5au8; 65536];
        let mut dst = vec![vec![0u8; 65536]; NB];
        let mut siov: Vec<libc::iovec> = (0..NB).map(|_| libc::iovec { iov_base: src.as_ptr() as *mut _, iov_len: size }).collect();
        let mut smm: Vec<libc::mmsghdr> = (0..NB).map(|_| std::mem::zeroed()).collect();
        let mut riov: Vec<libc::iovec> = dst.iter_mut().map(|d| libc::iovec { iov_base: d.as_mut_ptr() as *mut _, iov_len: 65536 }).collect();
        let mut rmm: Vec<libc::mmsghdr> = (0..NB).map(|_| std::mem::zeroed()).collect();
        for i in 0..NB {
            smm[i].msg_hdr.msg_iov = &mut siov[i];
            smm[i].msg_hdr.msg_iovlen = 1;
            rmm[i].msg_hdr.msg_iov = &mut riov[i];
            rmm[i].msg_hdr.msg_iovlen = 1;
        }
        let (mut got, mut sent) = (0usize, 0usize);
        let (c0, w0) = (cpu_us(), Instant::now());
        while got < n * size {
            match mode {
                "single" => {
                    for _ in 0..NB {
                        assert_eq!(libc::send(a, src.as_ptr() as *const _, size, 0), size as isize);
                    }
                    sent += NB;
                    for _ in 0..NB {
                        let r = libc::recv(b, dst[0].as_mut_ptr() as *mut _, 65536, 0);
                        got += r as usize;
                    }
                }
                "mmsg" => {
                    assert_eq!(libc::sendmmsg(a, smm.as_mut_ptr(), NB as u32, 0), NB as i32);
                    sent += NB;
                    let mut k = 0;
                    while k < NB {
                        let r = libc::recvmmsg(b, rmm.as_mut_ptr(), NB as u32, libc::MSG_DONTWAIT, std::ptr::null_mut());
                        assert!(r > 0);
                        for i in 0..r as usize {
                            got += rmm[i].msg_len as usize;
                        }
                        k += r as usize;
                    }
                }
                "gso" => {
                    let want = gso_n * size;
                    assert_eq!(libc::send(a, src.as_ptr() as *const _, want, 0), want as isize);
                    sent += gso_n;
                    let mut k = 0;
                    while k < want {
                        let r = libc::recv(b, dst[0].as_mut_ptr() as *mut _, 65536, 0);
                        assert!(r > 0);
                        k += r as usize;
                    }
                    got += k;
                }
                _ => panic!(),
            }
        }
        let (c1, w) = (cpu_us(), w0.elapsed().as_secs_f64());
        bulk_rows("limit", &format!("udp-{mode}"), "lo", size, got as f64, sent as f64, (c1.0 - c0.0, c1.1 - c0.1), w);
    }
}
