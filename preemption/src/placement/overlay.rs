//! Room as it would be.

use super::pod::Shape;
use crate::amount::Amount;
use crate::names::{HostId, ResourceId};
use std::collections::BTreeMap;

/// Says what is free.
pub trait Room {
    /// How much of a resource is free on a node; it may be negative.
    fn free(&self, host: HostId, resource: ResourceId) -> Amount;
}

/// What was taken and given back on top of a room. The room is never edited.
#[derive(Debug)]
pub struct Overlay<'a, R: ?Sized> {
    room: &'a R,
    /// What is free, where it is not what the room says.
    changed: BTreeMap<(HostId, ResourceId), Amount>,
    /// What stood there before each change, in order.
    journal: Vec<((HostId, ResourceId), Option<Amount>)>,
}

/// A point to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'a, R: Room + ?Sized> Overlay<'a, R> {
    /// On top of a room, with nothing changed.
    #[must_use]
    pub const fn new(room: &'a R) -> Self {
        Self {
            room,
            changed: BTreeMap::new(),
            journal: Vec::new(),
        }
    }

    /// Whether a pod of this shape finds enough on a node now. It says nothing about
    /// [`Shape::refused_by`].
    #[must_use]
    pub fn has_room(&self, host: HostId, shape: &Shape) -> bool {
        let mut requests = shape.requests.iter();
        requests.all(|(resource, asked)| *asked <= self.free(host, *resource))
    }

    /// Takes amounts on a node.
    pub fn take(&mut self, host: HostId, amounts: &[(ResourceId, Amount)]) {
        self.change(host, amounts, Amount::minus);
    }

    /// Gives amounts back on a node.
    pub fn give(&mut self, host: HostId, amounts: &[(ResourceId, Amount)]) {
        self.change(host, amounts, Amount::plus);
    }

    /// The point to come back to.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.journal.len())
    }

    /// Undoes all since a mark. Costs what was done since.
    pub fn roll_back(&mut self, mark: Mark) {
        while self.journal.len() > mark.0 {
            match self.journal.pop() {
                Some((key, Some(before))) => {
                    self.changed.insert(key, before);
                }
                Some((key, None)) => {
                    self.changed.remove(&key);
                }
                None => return,
            }
        }
    }

    fn change(
        &mut self,
        host: HostId,
        amounts: &[(ResourceId, Amount)],
        change: impl Fn(Amount, Amount) -> Amount,
    ) {
        for (resource, amount) in amounts {
            let key = (host, *resource);
            let after = change(self.free(host, *resource), *amount);
            let before = self.changed.insert(key, after);
            self.journal.push((key, before));
        }
    }
}

impl<R: Room + ?Sized> Room for Overlay<'_, R> {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        // Most places are asked for before anything is changed there.
        if self.changed.is_empty() {
            return self.room.free(host, resource);
        }
        let changed = self.changed.get(&(host, resource));
        changed.map_or_else(|| self.room.free(host, resource), |it| *it)
    }
}
