package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// As many as scheduler_perf has.
	creatingWorkers = 30
	pollInterval    = 10 * time.Millisecond
	// How long nothing may have been written until victims are counted, and how long that is waited for.
	settleInterval = 2 * time.Second
	settleMax      = 30 * time.Second
)

// notBound says that a run did not bind its pods in time.
type notBound struct {
	what         string
	bound, total int
}

func (e *notBound) Error() string {
	return fmt.Sprintf("%s not bound: %d of %d", e.what, e.total-e.bound, e.total)
}

// runner runs the operations of one session on a cluster.
type runner struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	pods    cache.SharedIndexInformer
	tracker *tracker
	// The LocalQueue and ClusterQueue of queued pods; without one, kube-scheduler alone decides.
	queue      string
	namespaces map[string]bool
	classes    map[int32]bool
	// The minCount of each PodGroup with the policy gang.
	minCounts map[types.NamespacedName]int
	// Pods that no operation has waited for yet.
	open        []*batch
	stopChurns  []func()
	measurement *measurement
}

func newRunner(ctx context.Context, config *rest.Config, queue string) (*runner, error) {
	// The clients must not be the limit.
	config.QPS = -1
	// Templates name versions that are deprecated.
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	r := &runner{
		client:     client,
		dynamic:    dynamicClient,
		pods:       factory.Core().V1().Pods().Informer(),
		tracker:    newTracker(),
		queue:      queue,
		namespaces: map[string]bool{},
		classes:    map[int32]bool{},
		minCounts:  map[types.NamespacedName]int{},
	}
	if _, err := r.pods.AddEventHandler(r.tracker.handler()); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), r.pods.HasSynced) {
		return nil, errors.New("the watch of pods has not started")
	}
	return r, nil
}

// run runs all operations, and returns what was measured.
func (r *runner) run(ctx context.Context, of session) (*result, error) {
	defer r.endChurns()
	var unbound *notBound
	for _, op := range of.operations {
		err := op.run(ctx, r)
		if err == nil {
			continue
		}
		if !errors.As(err, &unbound) {
			if ctx.Err() == nil {
				return nil, err
			}
			unbound = &notBound{what: "time over before all pods were created, pods"}
		}
		break
	}
	// The time of the run may be over, and what was measured is still read.
	ctx = context.WithoutCancel(ctx)
	if r.measurement != nil && r.measurement.writes == nil {
		if err := r.stopMeasuring(ctx); err != nil {
			return nil, err
		}
	}
	var pending map[string]int
	if unbound != nil {
		var err error
		if pending, err = r.pendingReasons(ctx); err != nil {
			return nil, err
		}
	}
	if r.measurement != nil {
		if err := r.settle(ctx); err != nil {
			return nil, err
		}
	}
	out := r.result(of, unbound)
	out.Pending = pending
	return out, nil
}

func (r *runner) endChurns() {
	for _, stop := range r.stopChurns {
		stop()
	}
	r.stopChurns = nil
}

// waitBound waits until all pods of a batch have been bound.
func (r *runner) waitBound(ctx context.Context, pods *batch) error {
	for {
		bound, _, ended := r.tracker.progress(pods)
		if bound >= pods.total {
			return nil
		}
		if ended || ctx.Err() != nil {
			return r.unbound(pods, bound)
		}
		time.Sleep(pollInterval)
	}
}

func (r *runner) unbound(pods *batch, bound int) error {
	what := "pods before the measured ones"
	if r.measurement != nil && slices.Contains(r.measurement.batches, pods) {
		what = "measured pods"
	}
	return &notBound{what: what, bound: bound, total: pods.total}
}

// inParallel calls a function for each index below count, and returns its first error.
func inParallel(ctx context.Context, count int, do func(index int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, creatingWorkers, count, func(index int) {
		if err := do(index); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}
