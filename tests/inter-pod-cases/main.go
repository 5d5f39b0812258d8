// Prints random pods and nodes, a line of JSON for each case, with what kube-scheduler's plugins PodTopologySpread and
// InterPodAffinity say about each node.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// testCase is one line of the output.
type testCase struct {
	Namespaces []*v1.Namespace `json:"namespaces"`
	Nodes      []*v1.Node      `json:"nodes"`
	Pods       []*v1.Pod       `json:"pods"`
	// Pod is the new pod, as its author wrote it.
	Pod *v1.Pod `json:"pod"`
	// Rejections has the reason for each node that a plugin rejects.
	Rejections map[string]string `json:"rejections"`
}

// withoutStatus leaves out the status of nodes and namespaces, and of pods that are not running: it has only empty fields.
func (c *testCase) withoutStatus() map[string]any {
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		panic(err)
	}
	for _, list := range []string{"namespaces", "nodes"} {
		objects, _ := encoded[list].([]any)
		for _, object := range objects {
			delete(object.(map[string]any), "status")
		}
	}
	return encoded
}

type plugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

func main() {
	count := flag.Int("count", 300, "the number of cases")
	seed := flag.Int64("seed", 1, "the seed")
	flag.Parse()
	metrics.InitMetrics()
	encoder := json.NewEncoder(os.Stdout)
	for i := range *count {
		generated := randomCase(rand.New(rand.NewSource(*seed + int64(i))))
		if err := evaluate(generated); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := encoder.Encode(generated.withoutStatus()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// evaluate sets the rejections of a case.
func evaluate(c *testCase) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stored := make([]*v1.Pod, len(c.Pods))
	for i, pod := range c.Pods {
		var err error
		if stored[i], err = create(ctx, pod); err != nil {
			return err
		}
	}
	pod, err := create(ctx, c.Pod)
	if err != nil {
		return err
	}
	snapshot := cache.NewSnapshot(stored, c.Nodes)
	var objects []runtime.Object
	for _, namespace := range c.Namespaces {
		objects = append(objects, namespace)
	}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithInformerFactory(factory))
	if err != nil {
		return err
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	spread, err := podtopologyspread.New(ctx, &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, handle, features)
	if err != nil {
		return err
	}
	affinity, err := interpodaffinity.New(ctx, &config.InterPodAffinityArgs{}, handle, features)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return err
	}
	c.Rejections = map[string]string{}
	for _, it := range []fwk.Plugin{spread, affinity} {
		state := framework.NewCycleState()
		_, status := it.(plugin).PreFilter(ctx, state, pod, nodes)
		if status.IsSkip() {
			continue
		}
		if !status.IsSuccess() {
			return status.AsError()
		}
		for _, node := range nodes {
			status := it.(plugin).Filter(ctx, state, pod, node)
			if _, isRejected := c.Rejections[node.Node().Name]; !status.IsSuccess() && !isRejected {
				c.Rejections[node.Node().Name] = status.Message()
			}
		}
	}
	return nil
}

// create returns a pod as the API server stores it.
func create(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	internal := &api.Pod{}
	if err := legacyscheme.Scheme.Convert(pod.DeepCopy(), internal, nil); err != nil {
		return nil, err
	}
	podregistry.Strategy.PrepareForCreate(ctx, internal)
	stored := &v1.Pod{}
	if err := legacyscheme.Scheme.Convert(internal, stored, nil); err != nil {
		return nil, err
	}
	stored.Status = pod.Status
	return stored, nil
}
