// Prints the pending workloads of each ClusterQueue of a dump, in the order of Kueue's visibility API: a JSON object of lists of
// `namespace/name`. The answers are those of the handler of that API, over Kueue's own queues.
//
// tests/bench/kueue/build compiles this file inside Kueue's module, with the versions in Kueue's go.mod.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	"sigs.k8s.io/kueue/pkg/util/expectations"
	utiltesting "sigs.k8s.io/kueue/pkg/util/testing"
	"sigs.k8s.io/kueue/pkg/visibility/storage"
	"sigs.k8s.io/kueue/pkg/workload"
)

// pendingMax is more than any ClusterQueue of a dump has.
const pendingMax = 1000

type allActive struct{}

func (allActive) ClusterQueueActive(kueue.ClusterQueueReference) bool { return true }

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: positions DUMP (JSON)")
	}
	ctrl.SetLogger(logr.Discard())
	objects := read(os.Args[1])
	ctx := context.Background()
	manager := qcache.NewManagerForUnitTests(utiltesting.NewFakeClient(objects...), allActive{},
		qcache.WithPreemptionExpectations(expectations.NewStore("preemption")))
	var queues []string
	// As the controllers of Kueue do when they see the objects.
	for _, object := range objects {
		if queue, ok := object.(*kueue.ClusterQueue); ok {
			check(manager.AddClusterQueue(ctx, queue))
			queues = append(queues, queue.Name)
		}
	}
	for _, object := range objects {
		if queue, ok := object.(*kueue.LocalQueue); ok {
			check(manager.AddLocalQueue(ctx, queue))
		}
	}
	for _, object := range objects {
		if pending, ok := object.(*kueue.Workload); ok && workload.IsAdmissible(pending) {
			check(manager.AddOrUpdateWorkload(logr.Discard(), pending))
		}
	}
	handler := storage.NewPendingWorkloadsInCqREST(manager)
	all := make(map[string][]string)
	for _, queue := range queues {
		all[queue] = positions(ctx, handler, queue)
	}
	check(json.NewEncoder(os.Stdout).Encode(all))
}

func positions(ctx context.Context, handler rest.GetterWithOptions, queue string) []string {
	answer, err := handler.Get(ctx, queue, &visibility.PendingWorkloadOptions{Limit: pendingMax})
	check(err)
	names := []string{}
	for _, pending := range answer.(*visibility.PendingWorkloadsSummary).Items {
		names = append(names, pending.Namespace+"/"+pending.Name)
	}
	return names
}

// read returns the objects of a list.
func read(path string) []client.Object {
	text, err := os.ReadFile(path)
	check(err)
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	check(json.Unmarshal(text, &list))
	scheme := runtime.NewScheme()
	check(kueue.AddToScheme(scheme))
	check(corev1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	var objects []client.Object
	for _, item := range list.Items {
		object, _, err := decoder.Decode(item, nil, nil)
		check(err)
		objects = append(objects, object.(client.Object))
	}
	return objects
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
