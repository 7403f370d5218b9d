//! A link on which anything may change: packets are queued, begin to leave, leave and travel one step at a time.

use super::arrivals::Travelling;
use super::{DropReason, Link, LossPoint, Notice, Setting, Verdict};
use crate::damage::DamageConfig;
use crate::queue::{Packet, Queue};
use anabranch_base::Instant;

impl<P: Clone + Send + 'static> Link<P> {
    pub(super) fn catch_up(&mut self, now: Instant) {
        loop {
            let (finish, change) = (self.rest.transmitter.finish_at(), self.rest.next_change);
            let next = finish.min(change);
            if next > now || next == Instant::FAR {
                return;
            }
            // What leaves at the very instant of a change has left.
            if finish <= change {
                self.pump(finish);
            } else if let Some((at, set)) = self.rest.progress.take_due(change) {
                self.rest.next_change = self.rest.progress.next_at().unwrap_or(Instant::FAR);
                self.set(at, set);
                if self.rest.next_change == Instant::FAR {
                    self.judge();
                }
            }
        }
    }

    /// Lets the transmitter work at `now`: what has finished leaves, what waits starts.
    pub(super) fn pump(&mut self, now: Instant) {
        loop {
            // What is lost may be sent again, and have left again by now.
            while let Some((at, packet)) = self.rest.transmitter.take_finished(now) {
                self.launch(at, packet);
            }
            if self.rest.transmitter.busy() {
                return;
            }
            let next = self.rest.queue.pop(now, &mut self.rest.dropped);
            if !self.rest.dropped.is_empty() {
                self.drop_all(now, DropReason::Queue);
            }
            let Some(packet) = next else {
                self.settle_down(now);
                return;
            };
            self.begin(now, packet);
        }
    }

    /// Gives a packet to the transmitter, which is free.
    fn begin(&mut self, now: Instant, packet: Packet<P>) {
        if let Some(notices) = &mut self.rest.notices {
            notices.push(Notice { at: now, dropped: None, payload: packet.payload.clone() });
        }
        self.rest.lost_before = 0;
        self.rest.transmitter.start(now, packet);
    }

    /// A packet that has left at `at` was lost: it is sent once more, or has been often enough.
    fn lose(&mut self, at: Instant, packet: Packet<P>) {
        let rest = &mut self.rest;
        if rest.lost_before < rest.config.repeats {
            rest.lost_before += 1;
            rest.counters.repeated.add(packet.size);
            rest.transmitter.start(at, packet);
            return;
        }
        let reason = if rest.config.repeats > 0 { DropReason::Repeats } else { DropReason::Loss };
        self.refuse(at, packet.size, packet.payload, reason);
    }

    /// A packet's last bit has left at `at`.
    fn launch(&mut self, at: Instant, packet: Packet<P>) {
        if self.rest.config.loss_point == LossPoint::Wire && self.is_lost(at) {
            self.lose(at, packet);
            return;
        }
        let Packet { size, entered, payload, .. } = packet;
        if self.rest.lost_before > 0 {
            self.rest.counters.repaired.add(size);
        }
        let delivery = Travelling { at, entered, size, duplicate: false, lost: false, payload };
        let twice = self.rest.config.duplicate > 0.0 && self.rest.random.duplicate.chance(self.rest.config.duplicate);
        if twice {
            self.rest.counters.duplicated.add(size);
            self.travel(at, Travelling { payload: delivery.payload.clone(), ..delivery });
        }
        self.travel(at, Travelling { duplicate: twice, ..delivery });
    }

    fn travel(&mut self, at: Instant, mut delivery: Travelling<P>) {
        if self.rest.config.damage != DamageConfig::None {
            self.damage(&mut delivery);
        }
        if self.rest.config.reorder > 0.0 && self.rest.random.reorder.chance(self.rest.config.reorder) {
            delivery.at = at;
        } else {
            delivery.at = at + self.rest.config.jitter.vary(self.rest.config.delay, &mut self.rest.random.jitter);
            if !self.rest.config.jitter_reorders {
                delivery.at = delivery.at.max(self.rest.last_arrival);
                self.rest.last_arrival = delivery.at;
            }
        }
        self.steady.row.push(delivery);
    }

    /// Flips bits of a packet that has left; of two copies each has its own.
    fn damage(&mut self, delivery: &mut Travelling<P>) {
        let rest = &mut self.rest;
        rest.config.damage.draw(delivery.size, &mut rest.random.damage, &mut rest.flips);
        if rest.flips.is_empty() {
            return;
        }
        rest.counters.damaged.add(delivery.size);
        if let Some(flip) = rest.flip {
            flip(&mut delivery.payload, &rest.flips);
        }
    }

    pub(super) fn set(&mut self, now: Instant, set: Setting) {
        match set {
            Setting::Rate(rate) => {
                self.rest.config.rate = rate;
                self.rest.config.deliveries = None;
                self.rest.transmitter.set_rate(now, rate);
                self.rest.queue.set_rate(rate);
                self.pump(now);
            }
            Setting::Delay(delay) => {
                if delay < self.rest.config.delay && !self.rest.config.jitter_reorders {
                    self.hurry(now + delay);
                }
                self.rest.config.delay = delay;
            }
            Setting::Jitter(jitter) => self.rest.config.jitter = jitter,
            Setting::Loss(loss) => {
                self.rest.decided.clear();
                self.rest.loss.set(&loss);
                self.rest.config.loss = loss;
            }
            Setting::Limit(limit) => {
                self.rest.config.limit = limit;
                self.rest.queue.set_limit(limit);
            }
            Setting::Duplicate(p) => self.rest.config.duplicate = p,
            Setting::Reorder(p) => self.rest.config.reorder = p,
            Setting::Damage(damage) => self.rest.config.damage = damage,
            Setting::Mtu(mtu) => self.rest.config.mtu = mtu,
            Setting::Up => self.rest.up = true,
            Setting::Down => {
                self.rest.up = false;
                if let Some(packet) = self.rest.transmitter.abort() {
                    self.refuse(now, packet.size, packet.payload, DropReason::Down);
                }
                self.rest.decided.clear();
                self.rest.queue.clear(now, &mut self.rest.dropped);
                self.drop_all(now, DropReason::Down);
            }
        }
    }

    /// What is on the way arrives by `latest`: where nothing overtakes, a delay that falls is a wait that is over (a
    /// stall, a buffer elsewhere), and not a long way that what follows has to wait for too.
    fn hurry(&mut self, latest: Instant) {
        self.steady.row.hurry(latest);
        self.rest.last_arrival = self.rest.last_arrival.min(latest);
    }

    pub(super) fn refuse(&mut self, at: Instant, size: u32, payload: P, reason: DropReason) -> Verdict {
        self.rest.counters.of(reason).add(size);
        if let Some(notices) = &mut self.rest.notices {
            notices.push(Notice { at, dropped: Some(reason), payload });
        } else if let Some(kept) = &mut self.rest.kept {
            kept.push(payload);
            self.steady.dropped = true;
        }
        Verdict::Dropped(reason)
    }

    /// Counts what the queue has dropped.
    fn drop_all(&mut self, at: Instant, reason: DropReason) {
        let mut dropped = core::mem::take(&mut self.rest.dropped);
        for packet in dropped.drain(..) {
            self.refuse(at, packet.size, packet.payload, reason);
        }
        self.rest.dropped = dropped;
    }
}
