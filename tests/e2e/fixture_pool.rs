//! One fixture for each trial that runs at the same time.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use crate::fixture::Fixture;

/// The fixtures that no trial uses. Each has its own control plane.
#[derive(Default)]
pub struct FixturePool {
    idle: Mutex<Vec<Fixture>>,
}

impl FixturePool {
    /// Takes the fixture that was returned last, because its server has most likely the right protocol and
    /// configuration. Without an idle fixture a new one is created.
    pub fn take(&self) -> PooledFixture<'_> {
        PooledFixture {
            fixture: self.with_idle(Vec::pop).unwrap_or_default(),
            pool: self,
        }
    }

    /// Stops the servers and the clusters of all idle fixtures.
    pub fn stop_all(&self) {
        for mut fixture in self.with_idle(mem::take) {
            fixture.stop_all();
        }
    }

    fn with_idle<T>(&self, change: impl FnOnce(&mut Vec<Fixture>) -> T) -> T {
        change(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A fixture in use. It returns to the pool when it is dropped, also by a trial that panics: its processes must be
/// stopped at the end of the run.
pub struct PooledFixture<'pool> {
    fixture: Fixture,
    pool: &'pool FixturePool,
}

impl Deref for PooledFixture<'_> {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl DerefMut for PooledFixture<'_> {
    fn deref_mut(&mut self) -> &mut Fixture {
        &mut self.fixture
    }
}

impl Drop for PooledFixture<'_> {
    fn drop(&mut self) {
        let fixture = mem::take(&mut self.fixture);
        self.pool.with_idle(|idle| idle.push(fixture));
    }
}
