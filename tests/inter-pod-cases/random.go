package main

import (
	"fmt"
	"math/rand"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	zoneLabel = "topology.kubernetes.io/zone"
	rackLabel = "example.com/rack"
)

var (
	topologyKeys = []string{v1.LabelHostname, zoneLabel, zoneLabel, rackLabel}
	namespaces   = []string{"blue", "blue", "green"}
	labelKeys    = []string{"app", "role"}
	labelValues  = []string{"one", "two"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.Intn(len(from))] }

func oneIn(r *rand.Rand, n int) bool { return r.Intn(n) == 0 }

func pointer[T any](value T) *T { return &value }

func randomCase(r *rand.Rand) *testCase {
	c := &testCase{}
	for _, name := range namespaces[1:] {
		labels := map[string]string{}
		if oneIn(r, 2) {
			labels["team"] = pick(r, labelValues)
		}
		c.Namespaces = append(c.Namespaces, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	for i := range 2 + r.Intn(4) {
		c.Nodes = append(c.Nodes, randomNode(r, fmt.Sprintf("node-%d", i)))
	}
	for i := range r.Intn(13) {
		pod := randomPod(r, fmt.Sprintf("pod-%d", i))
		pod.Spec.NodeName = pick(r, c.Nodes).Name
		pod.Status.Phase = v1.PodRunning
		if oneIn(r, 6) {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_700_000_000, 0).UTC()}
		}
		c.Pods = append(c.Pods, pod)
	}
	c.Pod = randomPod(r, "new")
	return c
}

func randomNode(r *rand.Rand, name string) *v1.Node {
	labels := map[string]string{v1.LabelHostname: name}
	if !oneIn(r, 6) {
		labels[zoneLabel] = pick(r, []string{"east", "west", "north"})
	}
	if !oneIn(r, 3) {
		labels[rackLabel] = pick(r, labelValues)
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if oneIn(r, 5) {
		effect := pick(r, []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule})
		node.Spec.Taints = []v1.Taint{{Key: "spot", Effect: effect}}
	}
	return node
}

func randomPod(r *rand.Rand, name string) *v1.Pod {
	labels := map[string]string{}
	for _, key := range labelKeys {
		if !oneIn(r, 3) {
			labels[key] = pick(r, labelValues)
		}
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pick(r, namespaces), Name: name, Labels: labels},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "main"}}},
	}
	affinity := &v1.Affinity{}
	if oneIn(r, 6) {
		affinity.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: randomTerms(r)}
	}
	if oneIn(r, 4) {
		affinity.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: randomTerms(r)}
	}
	if affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil {
		pod.Spec.Affinity = affinity
	}
	if oneIn(r, 2) {
		for range 1 + r.Intn(2) {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, randomSpread(r))
		}
	}
	if oneIn(r, 4) {
		pod.Spec.NodeSelector = map[string]string{zoneLabel: pick(r, []string{"east", "west"})}
	}
	if oneIn(r, 4) {
		pod.Spec.Tolerations = []v1.Toleration{{Key: "spot", Operator: v1.TolerationOpExists}}
	}
	return pod
}

func randomSelector(r *rand.Rand) *metav1.LabelSelector {
	if oneIn(r, 12) {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if !oneIn(r, 3) {
		selector.MatchLabels = map[string]string{pick(r, labelKeys): pick(r, labelValues)}
	}
	if oneIn(r, 3) {
		operator := pick(r, []metav1.LabelSelectorOperator{
			metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
		})
		expression := metav1.LabelSelectorRequirement{Key: pick(r, labelKeys), Operator: operator}
		if operator == metav1.LabelSelectorOpIn || operator == metav1.LabelSelectorOpNotIn {
			expression.Values = []string{pick(r, labelValues)}
		}
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{expression}
	}
	return selector
}

func randomTerms(r *rand.Rand) []v1.PodAffinityTerm {
	var terms []v1.PodAffinityTerm
	for range 1 + r.Intn(2) {
		term := v1.PodAffinityTerm{TopologyKey: pick(r, topologyKeys), LabelSelector: randomSelector(r)}
		if oneIn(r, 4) {
			term.Namespaces = []string{pick(r, namespaces)}
		}
		if oneIn(r, 4) {
			term.NamespaceSelector = &metav1.LabelSelector{}
			if oneIn(r, 2) {
				term.NamespaceSelector.MatchLabels = map[string]string{"team": pick(r, labelValues)}
			}
		}
		// A key may be in one of both lists only, and requires a selector.
		if term.LabelSelector != nil && oneIn(r, 4) {
			term.MatchLabelKeys = []string{pick(r, labelKeys)}
		} else if term.LabelSelector != nil && oneIn(r, 4) {
			term.MismatchLabelKeys = []string{pick(r, labelKeys)}
		}
		terms = append(terms, term)
	}
	return terms
}

func randomSpread(r *rand.Rand) v1.TopologySpreadConstraint {
	constraint := v1.TopologySpreadConstraint{
		MaxSkew:           int32(1 + r.Intn(2)),
		TopologyKey:       pick(r, topologyKeys),
		WhenUnsatisfiable: v1.DoNotSchedule,
		LabelSelector:     randomSelector(r),
	}
	if oneIn(r, 2) {
		// Most pods of the namespace, so that some domains have too many.
		exists := metav1.LabelSelectorRequirement{Key: pick(r, labelKeys), Operator: metav1.LabelSelectorOpExists}
		constraint.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{exists}}
	}
	if oneIn(r, 5) {
		constraint.WhenUnsatisfiable = v1.ScheduleAnyway
	} else if oneIn(r, 4) {
		constraint.MinDomains = pointer(int32(1 + r.Intn(3)))
	}
	policies := []v1.NodeInclusionPolicy{v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore}
	if oneIn(r, 3) {
		constraint.NodeAffinityPolicy = pointer(pick(r, policies))
	}
	if oneIn(r, 3) {
		constraint.NodeTaintsPolicy = pointer(pick(r, policies))
	}
	if constraint.LabelSelector != nil && oneIn(r, 4) {
		constraint.MatchLabelKeys = []string{pick(r, labelKeys)}
	}
	return constraint
}
