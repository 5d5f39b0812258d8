//! Hypothetical changes on top of free resources.

use super::pod::Shape;
use super::resource_vec::ResourceVec;
use crate::amount::Amount;
use crate::ids::{HostId, ResourceId};
use std::collections::BTreeMap;

/// A source of free resources by node.
pub trait FreeResources {
    /// How much of a resource is free on a node; it may be negative.
    fn free(&self, host: HostId, resource: ResourceId) -> Amount;

    /// How much of each resource is free on a node, for as many resources as `out` has slots.
    fn fill_free(&self, host: HostId, out: &mut [Amount]) {
        for (at, amount) in out.iter_mut().enumerate() {
            *amount = self.free(host, ResourceId::of(at));
        }
    }
}

/// Reservations and releases on top of free resources, which are not changed.
#[derive(Debug)]
pub struct Overlay<'a, R: ?Sized> {
    base: &'a R,
    changed: OverlayChanges,
    /// The free amounts of changed host ports. They have no slots in the rows: few are in use.
    host_ports: BTreeMap<(HostId, ResourceId), Amount>,
    /// The value before each change, in order.
    journal: Vec<(HostId, ResourceId, Amount)>,
}

#[derive(Debug)]
enum OverlayChanges {
    /// The free resources of changed nodes only, sorted by node.
    Sparse(Vec<(HostId, ResourceVec)>),
    /// The free resources of all nodes, with the same number of resources for each.
    Dense { resources: usize, free: Vec<Amount> },
}

/// A point to roll back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'a, R: FreeResources + ?Sized> Overlay<'a, R> {
    /// An overlay without changes, for changes to few nodes.
    #[must_use]
    pub const fn new(base: &'a R) -> Self {
        Self {
            base,
            changed: OverlayChanges::Sparse(Vec::new()),
            host_ports: BTreeMap::new(),
            journal: Vec::new(),
        }
    }

    /// An overlay without changes, for many nodes. Costs all nodes once; lookups are faster afterwards. `hosts_len` and
    /// `resources_len` are the numbers of ids.
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
            host_ports: BTreeMap::new(),
            journal: Vec::new(),
        }
    }

    /// Whether the free resources of a node suffice for a pod of this shape. Does not apply [`Shape::rejection_by`].
    #[must_use]
    pub fn fits(&self, host: HostId, shape: &Shape) -> bool {
        let is_free =
            |(resource, requested): &(ResourceId, Amount)| *requested <= self.free(host, *resource);
        if let OverlayChanges::Dense { resources, free } = &self.changed {
            let from = host.index().saturating_mul(*resources);
            let row = free.get(from..).unwrap_or_default();
            let has_room = shape.resources().iter().all(|(resource, requested)| {
                // The rows are adjacent: a larger index would read the next node.
                let is_covered = resource.index() < *resources;
                let free = row.get(resource.index()).filter(|_| is_covered);
                free.is_some_and(|free| requested <= free)
            });
            return has_room && (!shape.has_host_ports() || shape.host_ports().iter().all(is_free));
        }
        shape.requests.iter().all(is_free)
    }

    /// Reserves amounts on a node.
    pub fn reserve(&mut self, host: HostId, amounts: &[(ResourceId, Amount)]) {
        self.change(host, amounts, Amount::minus);
    }

    /// Releases amounts on a node.
    pub fn release(&mut self, host: HostId, amounts: &[(ResourceId, Amount)]) {
        self.change(host, amounts, Amount::plus);
    }

    /// A mark of the current state.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.journal.len())
    }

    /// Reverts all changes since a mark. Costs the number of changes.
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
            // The value and not the difference: a saturated amount could not be undone otherwise.
            let before = self.free(host, *resource);
            self.journal.push((host, *resource, before));
            self.set(host, *resource, change(before, *amount));
        }
    }

    /// Ports are apart from resources: decisions ask for resources far more often.
    #[cold]
    fn set_port(&mut self, host: HostId, port: ResourceId, amount: Amount) {
        self.host_ports.insert((host, port), amount);
    }

    #[cold]
    fn free_port(&self, host: HostId, port: ResourceId) -> Amount {
        let changed = self.host_ports.get(&(host, port)).copied();
        changed.unwrap_or_else(|| self.base.free(host, port))
    }

    fn set(&mut self, host: HostId, resource: ResourceId, amount: Amount) {
        if resource.has_port_bit() {
            return self.set_port(host, resource, amount);
        }
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
                        let base = self.base;
                        // A row shadows the base: copy all slots up to the resource.
                        rows.insert(
                            at,
                            (
                                host,
                                ResourceVec::from_fn(|it| base.free(host, it), resource),
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
        if resource.has_port_bit() {
            return self.free_port(host, resource);
        }
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
                let stored = row.and_then(|(_, row)| row.get_stored(resource));
                stored.unwrap_or_else(|| self.base.free(host, resource))
            }
        }
    }
}
