//! Shares of a resource per client address: connections, requests in flight, buffered bytes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Amounts in use by client address. No address gets more than its share.
#[derive(Debug)]
pub(crate) struct PeerShares {
    max: usize,
    used: Mutex<BTreeMap<IpAddr, usize>>,
}

impl PeerShares {
    /// Returns shares of `max` for each address.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            used: Mutex::default(),
        })
    }

    /// Returns the share of each address.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Returns an empty share of this address. IPv4 addresses in IPv6 form are the same client.
    pub(crate) fn share(self: &Arc<Self>, peer: IpAddr) -> PeerShare {
        PeerShare {
            shares: Arc::clone(self),
            peer: peer.to_canonical(),
            amount: 0,
        }
    }

    /// Takes one unit; `None` if the address has none left.
    pub(crate) fn take_one(self: &Arc<Self>, peer: IpAddr) -> Option<PeerShare> {
        let mut share = self.share(peer);
        share.grow(1).then_some(share)
    }

    #[cfg(test)]
    fn peers(&self) -> usize {
        self.used.lock().map_or(0, |used| used.len())
    }
}

/// An amount in use by one address; returned when dropped.
#[derive(Debug)]
pub(crate) struct PeerShare {
    shares: Arc<PeerShares>,
    peer: IpAddr,
    amount: usize,
}

impl PeerShare {
    /// Takes `more`; false, and nothing is taken, if the address has not that much left.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        let used = self.shares.used.lock();
        let mut used = used.unwrap_or_else(PoisonError::into_inner);
        let before = used.get(&self.peer).copied().unwrap_or_default();
        let after = before.saturating_add(more);
        if after > self.shares.max {
            return false;
        }
        used.insert(self.peer, after);
        self.amount = self.amount.saturating_add(more);
        true
    }
}

impl Drop for PeerShare {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let used = self.shares.used.lock();
        let mut used = used.unwrap_or_else(PoisonError::into_inner);
        let Some(amount) = used.get_mut(&self.peer) else {
            return;
        };
        *amount = amount.saturating_sub(self.amount);
        // Addresses without use are not kept: clients come and go.
        if *amount == 0 {
            used.remove(&self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn peer_share_is_per_address_and_returned_when_dropped() {
        let shares = PeerShares::new(2);
        let [a, a_mapped, b] =
            ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"].map(|it| it.parse::<IpAddr>().unwrap());
        let first = shares.take_one(a).unwrap();
        let second = shares.take_one(a_mapped).unwrap();
        assert!(shares.take_one(a).is_none());
        let other = shares.take_one(b).unwrap();
        drop(first);
        let mut third = shares.take_one(a).unwrap();
        assert!(!third.grow(1));
        drop((second, other));
        assert!(third.grow(1));
        drop(third);
        assert_eq!(shares.peers(), 0);
    }
}
