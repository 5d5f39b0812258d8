package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	jobUIDLabel       = "lockkeeper.dev/job-uid"
	podGroupLabel     = "lockkeeper.dev/pod-group-name"
	podGroupCondition = "lockkeeper.dev/PodGroup"
)

var workloads = schema.GroupVersionResource{Group: "lockkeeper.dev", Version: "v1alpha1", Resource: "workloads"}

// waitAttempted waits until each pod of a batch is bound, or the reason why it is not is known.
func (r *runner) waitAttempted(ctx context.Context, pods *batch) error {
	for {
		reasons, err := r.workloadReasons(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		attempted := 0
		for _, name := range pods.names {
			if pod := r.cached(pods.namespace, name); pod == nil || pod.Spec.NodeName != "" || pendingReason(pod, reasons) != "" {
				attempted++
			}
		}
		if attempted >= pods.total {
			return nil
		}
		if ctx.Err() != nil {
			return &notBound{what: "pods that nothing waits for, attempted or", bound: attempted, total: pods.total}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (r *runner) cached(namespace, name string) *v1.Pod {
	object, exists, err := r.pods.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil
	}
	pod, _ := object.(*v1.Pod)
	return pod
}

// workloadReasons returns, for uids of pods and for namespaces and names of groups, why their Workload has no quota.
func (r *runner) workloadReasons(ctx context.Context) (map[string]string, error) {
	reasons := map[string]string{}
	if r.queue == "" {
		return reasons, nil
	}
	list, err := r.dynamic.Resource(workloads).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list Workloads: %w", err)
	}
	for index := range list.Items {
		item := &list.Items[index]
		key := item.GetLabels()[jobUIDLabel]
		if group := item.GetLabels()[podGroupLabel]; group != "" {
			key = item.GetNamespace() + "/" + group
		}
		reasons[key] = falseCondition(item)
	}
	return reasons, nil
}

// falseCondition returns the reason and message of the first condition of admission that is false.
func falseCondition(workload *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
	for _, wanted := range []string{"QuotaReserved", "Admitted"} {
		for _, it := range conditions {
			condition, _ := it.(map[string]any)
			if condition["type"] == wanted && condition["status"] == "False" {
				return fmt.Sprintf("%s=False %v: %v", wanted, condition["reason"], condition["message"])
			}
		}
	}
	return ""
}

// pendingReason returns why a pod is not bound; empty if nothing has said so yet.
func pendingReason(pod *v1.Pod, ofWorkloads map[string]string) string {
	if group := groupOf(pod); group.Name != "" && ofWorkloads[group.String()] != "" {
		return ofWorkloads[group.String()]
	}
	if reason := ofWorkloads[string(pod.UID)]; reason != "" {
		return reason
	}
	for _, it := range pod.Status.Conditions {
		ofScheduler := it.Type == v1.PodScheduled && it.Reason != v1.PodReasonSchedulingGated
		if it.Status == v1.ConditionFalse && (ofScheduler || it.Type == podGroupCondition) {
			return fmt.Sprintf("%s=False %s: %s", it.Type, it.Reason, it.Message)
		}
	}
	return ""
}

// pendingReasons counts the reasons of all pods that are not bound.
func (r *runner) pendingReasons(ctx context.Context) (map[string]int, error) {
	of, err := r.workloadReasons(ctx)
	if err != nil {
		return nil, err
	}
	reasons := map[string]int{}
	for _, object := range r.pods.GetStore().List() {
		pod, ok := object.(*v1.Pod)
		if !ok || pod.Spec.NodeName != "" {
			continue
		}
		reason := pendingReason(pod, of)
		if reason == "" && len(pod.Spec.SchedulingGates) > 0 {
			reason = "no reason, and the pod has a scheduling gate"
		} else if reason == "" {
			reason = "no reason"
		}
		reasons[reason]++
	}
	return reasons, nil
}
