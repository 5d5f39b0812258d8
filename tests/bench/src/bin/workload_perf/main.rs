//! Kueue's scheduler performance test, for lockkeeper: workloads are made at a pace, run for a while once
//! they are admitted, and end. Or: how many bare status patches the same server takes.
//!
//! Source of the pattern: Kueue `test/performance/scheduler`, its generator's configuration.
#![allow(clippy::print_stdout, reason = "it prints its measurements")]

mod api_server_baseline;
mod generator;
mod nodes;
mod objects;
mod queued;
mod watch;
mod workload_status;

use anyhow::{Context, Error};
use clap::{Parser, Subcommand};
use generator::Generator;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Arguments {
    /// The cluster
    #[arg(long)]
    kubeconfig: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make the queues and nothing else
    Queues {
        #[arg(long)]
        generator: PathBuf,
        /// Quota without a bound
        #[arg(long)]
        unbounded: bool,
    },
    /// Make the workloads, end those that are admitted after their time, and wait until all have ended
    Run {
        #[arg(long)]
        generator: PathBuf,
        /// Make all at once instead of at the generator's pace
        #[arg(long)]
        at_once: bool,
        /// Do not end those that are admitted: ends when all are
        #[arg(long)]
        admit_only: bool,
        /// Workloads that exist already are not created again
        #[arg(long)]
        made: bool,
        /// Longest to wait, in seconds
        #[arg(long, default_value_t = 900)]
        patience: u64,
    },
    /// Make all workloads, and nothing else
    Make {
        #[arg(long)]
        generator: PathBuf,
        /// About so many, in the same proportions
        #[arg(long)]
        workloads: Option<usize>,
    },
    /// Make suspended Jobs with pod templates of this size, in the first queue of the generator
    Jobs {
        #[arg(long)]
        generator: PathBuf,
        /// Jobs
        #[arg(long)]
        jobs: usize,
        /// Bytes of each
        #[arg(long)]
        bytes: usize,
    },
    /// Make gated pods in the first queue of the generator
    Pods {
        #[arg(long)]
        generator: PathBuf,
        /// Pods
        #[arg(long)]
        pods: usize,
    },
    /// Make nodes, and pods that run on them
    Nodes {
        #[arg(long)]
        nodes: usize,
        /// Pods on all of them
        #[arg(long)]
        pods: usize,
    },
    /// Make a gang, and wait until all its pods are bound
    Gang(nodes::Gang),
    /// Patch the statuses of workloads as fast as it goes
    Bare {
        /// Workloads to patch
        #[arg(long, default_value_t = 2000)]
        objects: usize,
        /// Patches under way at once
        #[arg(long, default_value_t = 16)]
        parallel: usize,
    },
    /// Make, admit and end workloads as fast as it goes, nothing decided
    Lives {
        /// Workloads
        #[arg(long, default_value_t = 15_000)]
        objects: usize,
        /// Workloads under way at once
        #[arg(long, default_value_t = 16)]
        parallel: usize,
    },
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    let client = client(&arguments.kubeconfig).await?;
    match arguments.command {
        Command::Queues {
            generator,
            unbounded,
        } => objects::queues(&client, &Generator::from_file(&generator)?, unbounded).await,
        Command::Make {
            generator,
            workloads,
        } => {
            let begun = Instant::now();
            let mut generator = Generator::from_file(&generator)?;
            if let Some(workloads) = workloads {
                generator.scale(workloads);
            }
            let made = objects::create_all(&client, &generator, true).await?;
            println!("made {made} in {:.1} s", begun.elapsed().as_secs_f64());
            Ok(())
        }
        Command::Run {
            generator,
            at_once,
            admit_only,
            made,
            patience,
        } => {
            let generator = Generator::from_file(&generator)?;
            let watch = watch::ProgressWatch::start(&client, &generator, !admit_only);
            let begun = Instant::now();
            if !made {
                objects::create_all(&client, &generator, at_once).await?;
                println!("made after {:.1} s", begun.elapsed().as_secs_f64());
            }
            watch.finish(begun, Duration::from_secs(patience)).await
        }
        Command::Jobs {
            generator,
            jobs,
            bytes,
        } => queued::create_jobs(&client, &first_queue(&generator)?, jobs, bytes).await,
        Command::Pods { generator, pods } => {
            queued::create_pods(&client, &first_queue(&generator)?, pods).await
        }
        Command::Nodes { nodes, pods } => nodes::create(&client, nodes, pods).await,
        Command::Gang(gang) => {
            let time = nodes::bind(&client, &gang).await?;
            println!("bound after {:.2} s", time.as_secs_f64());
            Ok(())
        }
        Command::Bare { objects, parallel } => {
            api_server_baseline::run(&client, objects, parallel).await
        }
        Command::Lives { objects, parallel } => {
            api_server_baseline::run_lifecycles(&client, objects, parallel).await
        }
    }
}

fn first_queue(generator: &Path) -> Result<String, Error> {
    let generator = Generator::from_file(generator)?;
    let queues = generator.queues();
    let queue = queues.first().context("the generator has no queue")?;
    Ok(queue.name.clone())
}

async fn client(path: &Path) -> Result<Client, Error> {
    let read = Kubeconfig::read_from(path).context("cannot read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
