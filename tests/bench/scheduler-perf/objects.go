package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	priorities "k8s.io/api/scheduling/v1"
	groups "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	queueLabel    = "lockkeeper.dev/queue-name"
	admissionGate = "lockkeeper.dev/admission"
)

var localQueues = schema.GroupVersionResource{Group: "lockkeeper.dev", Version: "v1alpha1", Resource: "localqueues"}

// classesMutex guards the PriorityClasses and PodGroups of a runner, which workers create at the same time.
var classesMutex sync.Mutex

// shared returns the path of a template that all folders of scheduler_perf use, relative to one of them.
func shared(directory, name string) (string, error) {
	for prefix := ".."; strings.Count(prefix, "..") < 4; prefix = filepath.Join("..", prefix) {
		path := filepath.Join(prefix, "templates", name)
		if _, err := os.Stat(filepath.Join(directory, path)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no template %s above %s", name, directory)
}

func (r *runner) ensureNamespace(ctx context.Context, name string) error {
	if r.namespaces[name] {
		return nil
	}
	r.namespaces[name] = true
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := r.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	if r.queue == "" {
		return nil
	}
	queue := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": localQueues.GroupVersion().String(),
		"kind":       "LocalQueue",
		"metadata":   map[string]any{"name": r.queue},
		"spec":       map[string]any{"clusterQueue": r.queue},
	}}
	_, err := r.dynamic.Resource(localQueues).Namespace(name).Create(ctx, queue, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create LocalQueue in %s: %w", name, err)
	}
	return nil
}

func (r *runner) createNode(ctx context.Context, from *objectTemplate, index, count int) error {
	node := &v1.Node{}
	if err := from.fill(index, count, node); err != nil {
		return err
	}
	if node.Name == "" {
		// The same names in both modes.
		node.Name = fmt.Sprintf("%s%d", node.GenerateName, index)
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[v1.LabelHostname] = node.Name
	if _, err := r.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	return nil
}

// className returns the name of the PriorityClass with this value, which is created once. scheduler_perf writes numbers instead,
// which only an API server without the admission plugin Priority accepts.
func (r *runner) className(ctx context.Context, value int32) (string, error) {
	name := fmt.Sprintf("priority-%d", value)
	classesMutex.Lock()
	defer classesMutex.Unlock()
	if r.classes[value] {
		return name, nil
	}
	r.countWrite("POST priorityclasses")
	class := &priorities.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	_, err := r.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create PriorityClass: %w", err)
	}
	if err := r.waitForClass(ctx, name); err != nil {
		return "", err
	}
	r.classes[value] = true
	return name, nil
}

// waitForClass waits until the admission plugin Priority knows a PriorityClass, which it reads by a watch.
func (r *runner) waitForClass(ctx context.Context, name string) error {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "class-"},
		Spec: v1.PodSpec{
			PriorityClassName: name,
			Containers:        []v1.Container{{Name: "pause", Image: "registry.k8s.io/pause"}},
		},
	}
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for {
		_, err := r.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, options)
		if err == nil {
			return nil
		}
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("wait for PriorityClass: %w", err)
		}
		time.Sleep(pollInterval)
	}
}

func (r *runner) createPodGroup(ctx context.Context, from *objectTemplate, namespace string, index, count int) error {
	group := &groups.PodGroup{}
	if err := from.fill(index, count, group); err != nil {
		return err
	}
	// Templates name other versions; the fields are the same.
	group.TypeMeta = metav1.TypeMeta{}
	if value := group.Spec.Priority; value != nil {
		class, err := r.className(ctx, *value)
		if err != nil {
			return err
		}
		group.Spec.Priority, group.Spec.PriorityClassName = nil, class
	}
	options := metav1.CreateOptions{FieldValidation: "Strict"}
	created, err := r.client.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, options)
	if err != nil {
		return fmt.Errorf("create PodGroup: %w", err)
	}
	if gang := created.Spec.SchedulingPolicy.Gang; gang != nil {
		classesMutex.Lock()
		defer classesMutex.Unlock()
		r.minCounts[types.NamespacedName{Namespace: namespace, Name: created.Name}] = int(gang.MinCount)
	}
	return nil
}

// pod makes a pod of a template, with a PriorityClass in the place of a number.
func (r *runner) pod(ctx context.Context, from *objectTemplate, index, count int) (*v1.Pod, error) {
	pod := &v1.Pod{}
	if err := from.fill(index, count, pod); err != nil {
		return nil, err
	}
	if value := pod.Spec.Priority; value != nil {
		class, err := r.className(ctx, *value)
		if err != nil {
			return nil, err
		}
		pod.Spec.Priority, pod.Spec.PriorityClassName = nil, class
	}
	return pod, nil
}

// createPod creates one pod of an operation. Its queue, if it has one, is that of the runner.
func (r *runner) createPod(ctx context.Context, of *createPods, to *batch, index int, queued bool) error {
	pod, err := r.pod(ctx, of.filled, index, of.Count)
	if err != nil {
		return err
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	// As scheduler_perf: kube-scheduler does not share results between pods whose labels differ.
	pod.Labels["signature"] = fmt.Sprintf("signature-label-%d", index)
	if r.queue != "" && (queued || pod.Spec.SchedulingGroup != nil) {
		pod.Labels[queueLabel] = r.queue
		// The webhook adds it elsewhere.
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, v1.PodSchedulingGate{Name: admissionGate})
	}
	r.countWrite("POST pods")
	created, err := r.client.CoreV1().Pods(of.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	r.tracker.add(created, to)
	return nil
}

// createChurnPod returns the name of the pod; like scheduler_perf it ignores pods that cannot be created.
func (r *runner) createChurnPod(ctx context.Context, namespace string, from *objectTemplate) string {
	// A request that is cancelled may be counted by the API server or not.
	ctx = context.WithoutCancel(ctx)
	pod, err := r.pod(ctx, from, 0, 1)
	if err != nil {
		fmt.Fprintln(os.Stderr, "churn:", err)
		return ""
	}
	r.countWrite("POST pods")
	created, err := r.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return created.Name
}

func (r *runner) deletePod(ctx context.Context, namespace, name string) {
	r.tracker.willDelete(namespace, name)
	r.countWrite("DELETE pods")
	err := r.client.CoreV1().Pods(namespace).Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		fmt.Fprintln(os.Stderr, "churn:", err)
	}
}
