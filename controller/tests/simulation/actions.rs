//! The steps of a run: one action of a user, the API server, a watch or the controller.

use crate::fields::{is_deleted, uid};
use crate::jobs::JOB;
use crate::quota::Limits;
use crate::simulation::{InFlight, Simulation};
use crate::write::{describe, execute, written_object};
use lockkeeper_controller::{Kind, ObjectKey, WriteOp, WriteResult};
use std::rc::Rc;

/// Without faults, pods beyond the quota of their workload disappear within this time after their controller has
/// responded, in milliseconds.
const EXCESS_MAX_MS: i64 = 120_000;

/// The percentage of writes that fail during the phase of faults.
const FAULTS_PERCENT: usize = 12;

impl Simulation {
    /// Executes one step; false if none is possible.
    pub fn step(&mut self) -> Result<bool, String> {
        self.api.now_ms += self.rng.range(0, 15);
        self.enqueue_changed_jobs();
        self.start_next_leader();
        if let Some(job) = self.overdue_job() {
            self.step_job(&job);
            return Ok(true);
        }
        let weights = self.possible_weights();
        let Some(at) = self.rng.pick_weighted(&weights) else {
            return Ok(self.advance_to_next_timer());
        };
        match at {
            0 => self.poll_controller()?,
            1 => self.deliver_watch_event(),
            2 => self.apply_write()?,
            3 => self.deliver_write_result(),
            4 => self.step_job_controller(),
            5 => drop(self.api.collect_garbage()),
            6 => {
                self.users_left -= 1;
                self.user_action();
            }
            7 => self.inject_fault(),
            _ => self.step_kubelet(),
        }
        // Now and then only time passes.
        if !self.is_calm && self.rng.percent(2) {
            self.api.now_ms += self.rng.range(0, 4_000);
        }
        if let Some(found) = self.invariants.violation.take() {
            return Err(found);
        }
        if self.is_calm {
            let bound_ms = 2 * self.settings.job_response_ms + EXCESS_MAX_MS;
            self.invariants
                .check_excess_ends(&self.api, bound_ms, self.are_jobs_repaired)?;
        }
        Ok(true)
    }

    /// The weights of the possible actions.
    fn possible_weights(&self) -> [usize; 9] {
        let now_ms = self.api.now_ms;
        let mut is_possible = [false; 9];
        for process in &self.processes {
            let is_awake = process.wake_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
            is_possible[0] |= process.has_new_input || is_awake;
            is_possible[1] |= process
                .watches
                .iter()
                .any(|(kind, watch)| watch.is_behind(&self.api, *kind));
            is_possible[3] |= !process.write_results.is_empty();
        }
        is_possible[2] = !self.in_flight.is_empty();
        is_possible[4] = !self.jobs_to_do.is_empty();
        is_possible[5] = self.api.has_garbage;
        is_possible[6] = self.users_left > 0;
        is_possible[7] = self.faults_left > 0;
        is_possible[8] = !self.pods_to_do.is_empty();
        let mut weights = self.weights;
        for (weight, is_possible) in weights.iter_mut().zip(is_possible) {
            if !is_possible {
                *weight = 0;
            }
        }
        weights
    }

    /// Advances the time to the next timer; false if there is none.
    fn advance_to_next_timer(&mut self) -> bool {
        let wakes = self.processes.iter().filter_map(|it| it.wake_at_ms);
        let timers = self.job_timers.first().map(|(at_ms, _)| *at_ms);
        let Some(at_ms) = wakes.chain(timers).min() else {
            return false;
        };
        self.api.now_ms = self.api.now_ms.max(at_ms);
        true
    }

    fn poll_controller(&mut self) -> Result<(), String> {
        let now_ms = self.api.now_ms;
        let is_due = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        let able = self.processes.iter().enumerate();
        let able = able.filter(|(_, it)| it.has_new_input || is_due(it.wake_at_ms));
        let able: Vec<usize> = able.map(|(at, _)| at).collect();
        let at = *self.rng.pick(&able);
        let process = &mut self.processes[at];
        process.has_new_input = false;
        if process.decision_log.is_file_full() {
            process.reconciler.restart_events();
        }
        let output = process.reconciler.poll(now_ms);
        let events = process.reconciler.take_event_batches();
        process.decision_log.check(events)?;
        process.wake_at_ms = output.wake_at_ms;
        let number = process.number;
        let observed_version = process.observed_version(&self.api);
        let knows_users = process.has_observed(&self.api, self.invariants.last_user_version);
        let limits = if output.writes.is_empty() {
            Limits::new()
        } else {
            process.limits()
        };
        for write in output.writes {
            self.log(|| format!("{number} writes {}", describe(&write)));
            self.invariants.check_issued(&self.processes[at], &write);
            self.in_flight.push(InFlight {
                process: number,
                write,
                limits: limits.clone(),
                has_observed_users: knows_users,
                observed_version,
                begun_at_version: self.api.version(),
            });
        }
        let has_in_flight = self.in_flight.iter().any(|it| it.process == number);
        let process = &self.processes[at];
        let is_idle = !has_in_flight && process.write_results.is_empty();
        if process.is_leading {
            self.invariants
                .users
                .observe_edits(observed_version, is_idle);
        }
        Ok(())
    }

    fn deliver_watch_event(&mut self) {
        let mut behind = Vec::new();
        for (at, process) in self.processes.iter().enumerate() {
            for kind in process.kinds_behind(&self.api) {
                let weight = if self.slow.contains(&kind) { 1 } else { 8 };
                behind.push((at, kind, weight));
            }
        }
        let weights: Vec<usize> = behind.iter().map(|(_, _, weight)| *weight).collect();
        let at = self.rng.pick_weighted(&weights).unwrap();
        let (at, kind, _) = behind[at];
        let lines = self.processes[at].handle_next_event(&self.api, kind);
        let number = self.processes[at].number;
        for line in lines {
            self.log(|| format!("{number} {line}"));
        }
    }

    fn deliver_write_result(&mut self) {
        let able = self.processes.iter().enumerate();
        let able = able.filter(|(_, it)| !it.write_results.is_empty());
        let able: Vec<usize> = able.map(|(at, _)| at).collect();
        let at = *self.rng.pick(&able);
        let now_ms = self.api.now_ms;
        let (ticket, outcome) = self.processes[at].deliver_write_result(now_ms, &mut self.rng);
        let number = self.processes[at].number;
        self.log(|| format!("{number} gets the result of {}: {outcome:?}", ticket.0));
    }

    /// A Job whose controller has created pods and not reported them for as long as a controller that works may take.
    fn overdue_job(&self) -> Option<ObjectKey> {
        let due_ms = self.api.now_ms - self.settings.job_response_ms / 2;
        let unreported = &self.invariants.unreported_pods;
        let mut jobs = self.api.all(JOB);
        let found = jobs.find(|(_, it)| {
            let pods = unreported.get(uid(it));
            pods.is_some_and(|(_, since_ms)| *since_ms < due_ms) && !is_deleted(it)
        });
        found.map(|(name, _)| name.clone())
    }

    fn step_job_controller(&mut self) {
        let names: Vec<ObjectKey> = self.jobs_to_do.iter().cloned().collect();
        let name = self.rng.pick(&names).clone();
        if !self.step_job(&name) {
            self.jobs_to_do.remove(&name);
        }
    }

    fn step_kubelet(&mut self) {
        let names: Vec<ObjectKey> = self.pods_to_do.iter().cloned().collect();
        let name = self.rng.pick(&names).clone();
        if !self.step_pod(&name) {
            self.pods_to_do.remove(&name);
        }
    }

    /// Executes a write at the API server, or loses it.
    fn apply_write(&mut self) -> Result<(), String> {
        let at = self.rng.below(self.in_flight.len());
        let flight = self.in_flight.swap_remove(at);
        let is_fault =
            self.invariants.has_faults && !self.is_calm && self.rng.percent(FAULTS_PERCENT);
        let fault = if is_fault { self.rng.below(4) } else { 9 };
        let outcome = match fault {
            0 => WriteResult::Failed("request lost".to_owned()),
            1 => WriteResult::Rejected("rejected at random".to_owned()),
            // A conflict without a change of the object.
            3 => WriteResult::Conflict,
            _ => self.execute_write(&flight)?,
        };
        let outcome = match (fault, outcome) {
            (2, _) => WriteResult::Failed("response lost".to_owned()),
            (_, outcome) => outcome,
        };
        if let (WriteOp::ReadJob { uid, .. }, WriteResult::Read(_)) = (&flight.write.op, &outcome) {
            self.invariants.users.record_read(&self.api, uid);
        }
        let (by, ticket) = (flight.process, flight.write.id);
        self.log(|| format!("  write {} of {by}: {outcome:?}", ticket.0));
        if let Some(process) = self.processes.iter_mut().find(|it| it.number == by) {
            process.write_results.push((ticket, outcome));
        }
        Ok(())
    }

    fn execute_write(&mut self, flight: &InFlight) -> Result<WriteResult, String> {
        let (kind, name) = written_object(&flight.write);
        let Some(kind) = kind else {
            self.invariants.writes += 1;
            return Ok(WriteResult::Done(self.api.version()));
        };
        let before = self.api.get(kind, &name).map(Rc::clone);
        let excess = self.invariants.excess(&self.api);
        // The writes of the reconciler are always valid.
        let outcome = execute(&mut self.api, &flight.write)?;
        if matches!(outcome, WriteResult::Done(_)) {
            self.invariants.check_excess(&self.api, flight, &excess)?;
            let before = before.as_deref();
            self.invariants
                .check_applied(&self.api, &self.in_flight, flight, &name, before)?;
        }
        Ok(outcome)
    }

    fn inject_fault(&mut self) {
        self.faults_left -= 1;
        if self.processes.is_empty() {
            return;
        }
        let at = self.rng.below(self.processes.len());
        match self.rng.below(3) {
            0 => {
                let kinds: Vec<Kind> = self.processes[at].watches.keys().copied().collect();
                let kind = *self.rng.pick(&kinds);
                let watch = self.processes[at].watches.get_mut(&kind).unwrap();
                watch.relist(&self.api, kind);
                self.log(|| format!("the watch of {kind:?} restarts"));
            }
            1 => {
                let process = self.processes.remove(at);
                self.log(|| format!("controller {} is killed", process.number));
                let dice = &mut self.rng;
                self.in_flight
                    .retain(|it| it.process != process.number || dice.percent(50));
                if self.processes.is_empty() || self.rng.percent(30) {
                    self.start_process();
                }
                if process.is_leading || self.next_leader == Some(process.number) {
                    let next = self.rng.below(self.processes.len());
                    self.make_leader(next);
                }
            }
            _ => {
                for process in &mut self.processes {
                    if process.is_leading {
                        process.set_leading(&self.api, false);
                    }
                }
                let number = self.processes[at].number;
                self.log(|| format!("{number} becomes the next leader"));
                self.make_leader(at);
            }
        }
    }
}
