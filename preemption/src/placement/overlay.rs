//! Room as it would be.

use super::pod::Shape;
use super::resource_vec::ResourceVec;
use crate::amount::Amount;
use crate::ids::{HostId, ResourceId};

/// Says what is free.
pub trait FreeResources {
    /// How much of a resource is free on a node; it may be negative.
    fn free(&self, host: HostId, resource: ResourceId) -> Amount;

    /// How much of each resource is free on a node, for as many resources as there is place.
    fn fill_free(&self, host: HostId, out: &mut [Amount]) {
        for (at, amount) in out.iter_mut().enumerate() {
            *amount = self.free(host, ResourceId::of(at));
        }
    }
}

/// What was taken and given back on top of a room. The room is never edited.
#[derive(Debug)]
pub struct Overlay<'a, R: ?Sized> {
    base: &'a R,
    changed: OverlayChanges,
    /// What stood there before each change, in order.
    journal: Vec<(HostId, ResourceId, Amount)>,
}

#[derive(Debug)]
enum OverlayChanges {
    /// Of few nodes, sorted, what is free there now.
    Sparse(Vec<(HostId, ResourceVec)>),
    /// Of all nodes and as many resources for each.
    Dense { resources: usize, free: Vec<Amount> },
}

/// A point to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'a, R: FreeResources + ?Sized> Overlay<'a, R> {
    /// On top of a room, with nothing changed: for a few nodes.
    #[must_use]
    pub const fn new(base: &'a R) -> Self {
        Self {
            base,
            changed: OverlayChanges::Sparse(Vec::new()),
            journal: Vec::new(),
        }
    }

    /// On top of a room, with nothing changed: for many of its nodes. Costs all of them once; afterwards it is quicker
    /// to ask. `hosts_len` and `resources_len` are how many have a number.
    #[must_use]
    pub fn dense(base: &'a R, hosts_len: usize, resources_len: usize) -> Self {
        let mut free = vec![Amount::ZERO; hosts_len.saturating_mul(resources_len)];
        let rows = free.chunks_exact_mut(resources_len.max(1));
        for (at, row) in rows.enumerate() {
            base.fill_free(HostId::of(at), row);
        }
        Self {
            base,
            changed: OverlayChanges::Dense {
                resources: resources_len,
                free,
            },
            journal: Vec::new(),
        }
    }

    /// Whether a pod of this shape finds enough on a node now. It says nothing about
    /// [`Shape::refused_by`].
    #[must_use]
    pub fn fits(&self, host: HostId, shape: &Shape) -> bool {
        let mut requests = shape.requests.iter();
        if let OverlayChanges::Dense { resources, free } = &self.changed {
            let from = host.index().saturating_mul(*resources);
            let row = free.get(from..).unwrap_or_default();
            return requests.all(|(resource, asked)| {
                let is_known = resource.index() < *resources;
                let free = row.get(resource.index()).filter(|_| is_known);
                free.is_some_and(|free| asked <= free)
            });
        }
        requests.all(|(resource, asked)| *asked <= self.free(host, *resource))
    }

    /// Takes amounts on a node.
    pub fn reserve(&mut self, host: HostId, amounts: &[(ResourceId, Amount)]) {
        self.change(host, amounts, Amount::minus);
    }

    /// Gives amounts back on a node.
    pub fn release(&mut self, host: HostId, amounts: &[(ResourceId, Amount)]) {
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
            let Some((host, resource, before)) = self.journal.pop() else {
                return;
            };
            self.set(host, resource, before);
        }
    }

    fn change(
        &mut self,
        host: HostId,
        amounts: &[(ResourceId, Amount)],
        change: impl Fn(Amount, Amount) -> Amount,
    ) {
        for (resource, amount) in amounts {
            let before = self.free(host, *resource);
            self.journal.push((host, *resource, before));
            self.set(host, *resource, change(before, *amount));
        }
    }

    fn set(&mut self, host: HostId, resource: ResourceId, amount: Amount) {
        match &mut self.changed {
            OverlayChanges::Dense { resources, free } => {
                let from = host.index().saturating_mul(*resources);
                let at = from.saturating_add(resource.index());
                if let Some(slot) = free.get_mut(at).filter(|_| resource.index() < *resources) {
                    *slot = amount;
                }
            }
            OverlayChanges::Sparse(rows) => {
                let at = match rows.binary_search_by_key(&host, |it| it.0) {
                    Ok(at) => at,
                    Err(at) => {
                        let room = self.base;
                        rows.insert(
                            at,
                            (
                                host,
                                ResourceVec::from_fn(|it| room.free(host, it), resource),
                            ),
                        );
                        at
                    }
                };
                if let Some((_, row)) = rows.get_mut(at) {
                    row.extend_with(resource, |it| self.base.free(host, it));
                    row.set(resource, amount);
                }
            }
        }
    }
}

impl<R: FreeResources + ?Sized> FreeResources for Overlay<'_, R> {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        match &self.changed {
            OverlayChanges::Dense { resources, free } => {
                let from = host.index().saturating_mul(*resources);
                let at = from.saturating_add(resource.index());
                let amount = free.get(at).filter(|_| resource.index() < *resources);
                amount.copied().unwrap_or_default()
            }
            OverlayChanges::Sparse(rows) => {
                let at = rows.binary_search_by_key(&host, |it| it.0).ok();
                let row = at.and_then(|at| rows.get(at));
                let known = row.and_then(|(_, row)| row.get_stored(resource));
                known.unwrap_or_else(|| self.base.free(host, resource))
            }
        }
    }
}
