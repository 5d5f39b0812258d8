package main

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// batch are the pods that one operation creates.
type batch struct {
	namespace string
	total     int
	// Names of the pods that were created.
	names []string
	// How many of them have been bound, and when the last one was; pods that were preempted later included.
	bound     int
	lastBound time.Time
	// How many were deleted before they were bound: they will never be.
	lost int
	// How many were bound, and then deleted by others.
	victims int
	// When the last one was created.
	created time.Time
}

// seen is what the watch has told about a pod.
type seen struct {
	batch *batch
	group types.NamespacedName
	bound time.Time
	// Whether it was deleted, or has a deletion timestamp.
	deleted bool
}

// tracker follows all pods of the cluster by a watch.
type tracker struct {
	mutex sync.Mutex
	pods  map[types.UID]*seen
	// Pods that this program deletes, which are no victims.
	own map[types.NamespacedName]bool
	// Pods that others deleted: those that were bound, and those that were not.
	victims, removed int
}

func newTracker() *tracker {
	return &tracker{pods: map[types.UID]*seen{}, own: map[types.NamespacedName]bool{}}
}

func (t *tracker) newBatch(namespace string, total int) *batch {
	return &batch{namespace: namespace, total: total}
}

// of returns what was seen of a pod, whose creation may be answered before or after its first event.
func (t *tracker) of(uid types.UID) *seen {
	known := t.pods[uid]
	if known == nil {
		known = &seen{}
		t.pods[uid] = known
	}
	return known
}

// add says that a pod belongs to a batch.
func (t *tracker) add(pod *v1.Pod, to *batch) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	known := t.of(pod.UID)
	known.batch = to
	to.names = append(to.names, pod.Name)
	if !known.bound.IsZero() {
		to.count(known.bound)
	} else if known.deleted {
		to.lost++
	}
}

func (b *batch) count(bound time.Time) {
	b.bound++
	if bound.After(b.lastBound) {
		b.lastBound = bound
	}
}

// willDelete says that this program deletes a pod.
func (t *tracker) willDelete(namespace, name string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.own[types.NamespacedName{Namespace: namespace, Name: name}] = true
}

func (t *tracker) observe(object any, deleted bool) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	known := t.of(pod.UID)
	known.group = groupOf(pod)
	if pod.Spec.NodeName != "" && known.bound.IsZero() {
		known.bound = time.Now()
		if known.batch != nil {
			known.batch.count(known.bound)
		}
	}
	if (deleted || pod.DeletionTimestamp != nil) && !known.deleted {
		known.deleted = true
		t.count(known, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
}

// count adds a deleted pod to the victims, or to those that were removed before they were bound.
func (t *tracker) count(of *seen, name types.NamespacedName) {
	switch {
	case t.own[name]:
	case of.bound.IsZero():
		t.removed++
	default:
		t.victims++
		if of.batch != nil {
			of.batch.victims++
		}
	}
	if of.bound.IsZero() && of.batch != nil {
		of.batch.lost++
	}
}

func groupOf(pod *v1.Pod) types.NamespacedName {
	group := pod.Spec.SchedulingGroup
	if group == nil || group.PodGroupName == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: *group.PodGroupName}
}

func (t *tracker) handler() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { t.observe(object, false) },
		UpdateFunc: func(_, object any) { t.observe(object, false) },
		DeleteFunc: func(object any) { t.observe(object, true) },
	}
}

// progress returns how many pods of a batch are bound, when the last one was, and whether no more can be.
func (t *tracker) progress(of *batch) (bound int, last time.Time, ended bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return of.bound, of.lastBound, of.bound+of.lost >= of.total
}

// gangs counts, of the gangs with these minimum counts: those that have lost pods and have fewer left than they need, but not none,
// and those of which fewer pods are bound than they need, but not none.
func (t *tracker) gangs(minCounts map[types.NamespacedName]int) (broken, partlyBound int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	type counts struct{ lost, left, bound int }
	groups := map[types.NamespacedName]counts{}
	for _, pod := range t.pods {
		of := groups[pod.group]
		switch {
		case pod.deleted:
			of.lost++
		case pod.bound.IsZero():
			of.left++
		default:
			of.left++
			of.bound++
		}
		groups[pod.group] = of
	}
	for name, minCount := range minCounts {
		of := groups[name]
		if of.lost > 0 && of.left > 0 && of.left < minCount {
			broken++
		} else if of.bound > 0 && of.bound < minCount {
			partlyBound++
		}
	}
	return broken, partlyBound
}
