// Runs cases of Kubernetes' scheduler_perf on a cluster, with the gang scheduling and preemption of kube-scheduler, or with pods in
// a queue of lockkeeper. The cases are read from the folder of scheduler_perf in the module of Kubernetes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

const usage = `usage:
  scheduler-perf list --folder DIR [--label LABEL,...] [SUBSTRING...]   names and feature gates of workloads
  scheduler-perf run --folder DIR --kubeconfig FILE --case NAME [--queue NAME] [--timeout 300s]   one JSON line
  scheduler-perf table   those lines as a table`

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal(usage)
	}
	if err := command(os.Args[1], os.Args[2:]); err != nil {
		log.Fatalf("scheduler-perf: %v", err)
	}
}

func command(name string, arguments []string) error {
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	folder := flags.String("folder", "", "the folder of scheduler_perf")
	labels := flags.String("label", "", "only workloads that have one of these labels")
	kubeconfig := flags.String("kubeconfig", "", "the cluster")
	wanted := flags.String("case", "", "the name of the workload")
	queue := flags.String("queue", "", "the ClusterQueue of the pods; without one, kube-scheduler alone decides")
	timeout := flags.Duration("timeout", 300*time.Second, "the longest time of a run")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	switch name {
	case "list":
		return list(*folder, strings.Split(*labels, ","), flags.Args())
	case "run":
		return run(*folder, *kubeconfig, *wanted, *queue, *timeout)
	case "table":
		return table(os.Stdin, os.Stdout)
	}
	return errors.New(usage)
}

func list(folder string, labels, substrings []string) error {
	sessions, err := readSessions(folder)
	if err != nil {
		return err
	}
	for _, it := range sessions {
		labelled := slices.ContainsFunc(labels, func(label string) bool { return label == "" || slices.Contains(it.labels, label) })
		named := slices.ContainsFunc(substrings, func(text string) bool { return strings.Contains(it.name, text) })
		if labelled && (named || len(substrings) == 0) {
			fmt.Printf("%s %s\n", it.name, gates(it.featureGates))
		}
	}
	return nil
}

func run(folder, kubeconfig, wanted, queue string, timeout time.Duration) error {
	sessions, err := readSessions(folder)
	if err != nil {
		return err
	}
	index := slices.IndexFunc(sessions, func(it session) bool { return it.name == wanted })
	if index < 0 {
		return fmt.Errorf("there is no workload %q", wanted)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	// The watch goes on after the time of the run, until victims are counted.
	watching, stop := context.WithCancel(context.Background())
	defer stop()
	r, err := newRunner(watching, config, queue)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(watching, timeout)
	defer cancel()
	out, err := r.run(ctx, sessions[index])
	if err != nil {
		return fmt.Errorf("%s: %w", wanted, err)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
