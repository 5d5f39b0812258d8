//! One step of a world: somebody does one thing.

use crate::quota::Limits;
use crate::world::{InFlight, World};
use crate::write::{line, object, perform};
use lockkeeper_controller::{Kind, Name, Outcome};
use std::rc::Rc;

/// Of a hundred writes during the disorder, how many fail in one way or another.
const FAULTS_PERCENT: usize = 12;

impl World {
    /// One step; false if nothing is left to happen.
    pub fn step(&mut self) -> Result<bool, String> {
        self.api.now_ms += self.dice.within(0, 15);
        self.notice_jobs();
        let weights = self.possible();
        let Some(at) = self.dice.weighted(&weights) else {
            return Ok(self.pass_time());
        };
        match at {
            0 => self.ask(),
            1 => self.hear(),
            2 => self.land()?,
            3 => self.answer(),
            4 => self.work(),
            5 => drop(self.api.collect()),
            6 => {
                self.users_left -= 1;
                self.user();
            }
            _ => self.fault(),
        }
        // Now and then nobody does anything for a while.
        if !self.is_calm && self.dice.percent(2) {
            self.api.now_ms += self.dice.within(0, 4_000);
        }
        match self.watcher.found.take() {
            Some(found) => Err(found),
            None => Ok(true),
        }
    }

    /// The weights of what can be done now.
    fn possible(&self) -> [usize; 8] {
        let now_ms = self.api.now_ms;
        let mut is_possible = [false; 8];
        for it in &self.processes {
            let is_awake = it.wake_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
            is_possible[0] |= it.has_news || is_awake;
            is_possible[1] |= it
                .watches
                .iter()
                .any(|(kind, watch)| watch.is_behind(&self.api, *kind));
            is_possible[3] |= !it.answers.is_empty();
        }
        is_possible[2] = !self.flights.is_empty();
        is_possible[4] = !self.jobs_to_do.is_empty();
        is_possible[5] = self.api.has_garbage;
        is_possible[6] = self.users_left > 0;
        is_possible[7] = self.faults_left > 0;
        let mut weights = self.weights;
        for (weight, is_possible) in weights.iter_mut().zip(is_possible) {
            if !is_possible {
                *weight = 0;
            }
        }
        weights
    }

    /// Nothing happens before the next timer. False if there is none.
    fn pass_time(&mut self) -> bool {
        let wakes = self.processes.iter().filter_map(|it| it.wake_at_ms);
        let timers = self.job_timers.first().map(|(at_ms, _)| *at_ms);
        let Some(at_ms) = wakes.chain(timers).min() else {
            return false;
        };
        self.api.now_ms = self.api.now_ms.max(at_ms);
        true
    }

    fn ask(&mut self) {
        let now_ms = self.api.now_ms;
        let is_due = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        let able = self.processes.iter().enumerate();
        let able = able.filter(|(_, it)| it.has_news || is_due(it.wake_at_ms));
        let able: Vec<usize> = able.map(|(at, _)| at).collect();
        let at = *self.dice.pick(&able);
        let process = &mut self.processes[at];
        process.has_news = false;
        let output = process.reconciler.next(now_ms);
        process.wake_at_ms = output.wake_at_ms;
        let (number, is_sure) = (process.number, process.is_sure);
        let knows_users = process.has_heard(&self.api, self.watcher.user_at);
        let limits = if output.writes.is_empty() {
            Limits::new()
        } else {
            process.limits()
        };
        for write in output.writes {
            self.tell(|| format!("{number} writes {}", line(&write)));
            self.watcher.issued(&self.processes[at], &write);
            self.flights.push(InFlight {
                by: number,
                write,
                limits: limits.clone(),
                is_sure,
                knows_users,
                begun_at: self.api.version(),
            });
        }
        let has_foreign = self.flights.iter().any(|it| it.by != number);
        let has_own = self.flights.iter().any(|it| it.by == number);
        let process = &mut self.processes[at];
        let is_idle = !has_own && process.answers.is_empty();
        if process.is_leading
            && is_idle
            && !has_foreign
            && process.has_heard(&self.api, process.has_to_hear)
        {
            process.is_sure = true;
        }
    }

    fn hear(&mut self) {
        let mut behind = Vec::new();
        for (at, process) in self.processes.iter().enumerate() {
            for kind in process.behind(&self.api) {
                let weight = if self.slow.contains(&kind) { 1 } else { 8 };
                behind.push((at, kind, weight));
            }
        }
        let weights: Vec<usize> = behind.iter().map(|(_, _, weight)| *weight).collect();
        let at = self.dice.weighted(&weights).unwrap();
        let (at, kind, _) = behind[at];
        let lines = self.processes[at].hear(&self.api, kind);
        let number = self.processes[at].number;
        for line in lines {
            self.tell(|| format!("{number} {line}"));
        }
    }

    fn answer(&mut self) {
        let able = self.processes.iter().enumerate();
        let able = able.filter(|(_, it)| !it.answers.is_empty());
        let able: Vec<usize> = able.map(|(at, _)| at).collect();
        let at = *self.dice.pick(&able);
        let now_ms = self.api.now_ms;
        let (ticket, outcome) = self.processes[at].answer(now_ms, &mut self.dice);
        let number = self.processes[at].number;
        self.tell(|| format!("{number} is answered {}: {outcome:?}", ticket.0));
    }

    fn work(&mut self) {
        let names: Vec<Name> = self.jobs_to_do.iter().cloned().collect();
        let name = self.dice.pick(&names).clone();
        if !self.step_job(&name) {
            self.jobs_to_do.remove(&name);
        }
    }

    /// A write reaches the API server, or does not.
    fn land(&mut self) -> Result<(), String> {
        let at = self.dice.below(self.flights.len());
        let flight = self.flights.swap_remove(at);
        let is_fault =
            self.watcher.has_faults && !self.is_calm && self.dice.percent(FAULTS_PERCENT);
        let fault = if is_fault { self.dice.below(4) } else { 9 };
        let outcome = match fault {
            0 => Outcome::Failed("it never came".to_owned()),
            1 => Outcome::Refused("somebody does not like it".to_owned()),
            // Though nobody has changed it.
            3 => Outcome::Conflict,
            _ => self.perform(&flight)?,
        };
        let outcome = match (fault, outcome) {
            (2, _) => Outcome::Failed("the answer never came".to_owned()),
            (_, outcome) => outcome,
        };
        let (by, ticket) = (flight.by, flight.write.ticket);
        self.tell(|| format!("  write {} of {by}: {outcome:?}", ticket.0));
        if let Some(process) = self.processes.iter_mut().find(|it| it.number == by) {
            process.answers.push((ticket, outcome));
        }
        let is_leaders = self
            .processes
            .iter()
            .any(|it| it.number == by && it.is_leading);
        if !is_leaders {
            self.doubt();
        }
        Ok(())
    }

    fn perform(&mut self, flight: &InFlight) -> Result<Outcome, String> {
        let (kind, name) = object(&flight.write);
        let Some(kind) = kind else {
            self.watcher.writes += 1;
            return Ok(Outcome::Done(self.api.version()));
        };
        let before = self.api.get(kind, &name).map(Rc::clone);
        // What the reconciler writes is never wrong by itself.
        let outcome = perform(&mut self.api, &flight.write)?;
        if matches!(outcome, Outcome::Done(_)) {
            let before = before.as_deref();
            self.watcher
                .landed(&self.api, flight, kind, &name, before)?;
        }
        Ok(outcome)
    }

    fn fault(&mut self) {
        self.faults_left -= 1;
        if self.processes.is_empty() {
            return;
        }
        let at = self.dice.below(self.processes.len());
        match self.dice.below(3) {
            0 => {
                let kinds: Vec<Kind> = self.processes[at].watches.keys().copied().collect();
                let kind = *self.dice.pick(&kinds);
                let watch = self.processes[at].watches.get_mut(&kind).unwrap();
                watch.list(&self.api, kind);
                self.tell(|| format!("the watch of {kind:?} breaks"));
            }
            1 => {
                let process = self.processes.remove(at);
                self.tell(|| format!("controller {} is killed", process.number));
                let dice = &mut self.dice;
                self.flights
                    .retain(|it| it.by != process.number || dice.percent(50));
                if self.processes.is_empty() || self.dice.percent(30) {
                    self.start_process();
                }
                if process.is_leading {
                    let next = self.dice.below(self.processes.len());
                    self.lead(next);
                }
            }
            _ => {
                let now_ms = self.api.now_ms;
                for process in &mut self.processes {
                    if process.is_leading {
                        process.lead(now_ms, false);
                    }
                }
                let number = self.processes[at].number;
                self.tell(|| format!("{number} leads from now on"));
                self.lead(at);
            }
        }
    }
}
