package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// operation is one step of a case.
type operation interface {
	// resolve sets the counts and reads the templates, before anything runs.
	resolve(in surroundings) error
	run(ctx context.Context, r *runner) error
}

// newOperation returns an empty operation; namespace is that of its objects if it does not name one.
func newOperation(opcode, namespace string) (operation, error) {
	switch opcode {
	case "createNodes":
		return &createNodes{}, nil
	case "createNamespaces":
		return &createNamespaces{}, nil
	case "createPodGroups":
		return &createPodGroups{}, nil
	case "createPods":
		return &createPods{Namespace: namespace}, nil
	case "churn":
		return &churn{Namespace: namespace, IntervalMilliseconds: 500}, nil
	case "barrier":
		return &barrier{}, nil
	case "startCollectingMetrics":
		return &startCollectingMetrics{}, nil
	case "stopCollectingMetrics":
		return &stopCollectingMetrics{}, nil
	}
	return nil, fmt.Errorf("unknown opcode %q", opcode)
}

// counted are the fields of operations that create a number of objects.
type counted struct {
	Opcode         string         `json:"opcode"`
	Count          int            `json:"count"`
	CountParam     string         `json:"countParam"`
	TemplateParams map[string]any `json:"templateParams"`
}

func (c *counted) resolveCount(in surroundings) (err error) {
	c.Count, err = in.params.count(c.Count, c.CountParam)
	return err
}

func (c *counted) template(in surroundings, path string) (*objectTemplate, error) {
	values, err := in.params.values(c.TemplateParams)
	if err != nil {
		return nil, err
	}
	return readTemplate(filepath.Join(in.directory, path), values)
}

type createNodes struct {
	counted
	NodeTemplatePath string `json:"nodeTemplatePath"`

	filled *objectTemplate
}

func (o *createNodes) resolve(in surroundings) (err error) {
	if err := o.resolveCount(in); err != nil {
		return err
	}
	if o.NodeTemplatePath == "" {
		// scheduler_perf has the same node in its code.
		o.NodeTemplatePath, err = shared(in.directory, "node-default.yaml")
		if err != nil {
			return err
		}
	}
	o.filled, err = o.template(in, o.NodeTemplatePath)
	return err
}

func (o *createNodes) run(ctx context.Context, r *runner) error {
	return inParallel(ctx, o.Count, func(index int) error { return r.createNode(ctx, o.filled, index, o.Count) })
}

type createNamespaces struct {
	counted
	Prefix string `json:"prefix"`
}

func (o *createNamespaces) resolve(in surroundings) error { return o.resolveCount(in) }

func (o *createNamespaces) run(ctx context.Context, r *runner) error {
	for index := range o.Count {
		if err := r.ensureNamespace(ctx, fmt.Sprintf("%s-%d", o.Prefix, index)); err != nil {
			return err
		}
	}
	return nil
}

type createPodGroups struct {
	counted
	Namespace    string `json:"namespace"`
	TemplatePath string `json:"templatePath"`

	filled *objectTemplate
}

func (o *createPodGroups) resolve(in surroundings) (err error) {
	if o.Namespace == "" {
		return errors.New("no namespace")
	}
	if err := o.resolveCount(in); err != nil {
		return err
	}
	o.filled, err = o.template(in, o.TemplatePath)
	return err
}

func (o *createPodGroups) run(ctx context.Context, r *runner) error {
	if err := r.ensureNamespace(ctx, o.Namespace); err != nil {
		return err
	}
	return inParallel(ctx, o.Count, func(index int) error {
		return r.createPodGroup(ctx, o.filled, o.Namespace, index, o.Count)
	})
}

type createPods struct {
	counted
	CountMultiplierParam string `json:"countMultiplierParam"`
	Namespace            string `json:"namespace"`
	PodTemplatePath      string `json:"podTemplatePath"`
	CollectMetrics       bool   `json:"collectMetrics"`
	SkipWaitToCompletion bool   `json:"skipWaitToCompletion"`

	filled *objectTemplate
}

func (o *createPods) resolve(in surroundings) (err error) {
	if o.CollectMetrics && o.SkipWaitToCompletion {
		return errors.New("collectMetrics and skipWaitToCompletion are both set")
	}
	if err := o.resolveCount(in); err != nil {
		return err
	}
	multiplier, err := in.params.count(1, o.CountMultiplierParam)
	if err != nil {
		return err
	}
	o.Count *= multiplier
	if o.PodTemplatePath == "" {
		// scheduler_perf has the same pod in its code.
		o.PodTemplatePath, err = shared(in.directory, "pod-default.yaml")
		if err != nil {
			return err
		}
	}
	o.filled, err = o.template(in, o.PodTemplatePath)
	return err
}

func (o *createPods) run(ctx context.Context, r *runner) error {
	if err := r.ensureNamespace(ctx, o.Namespace); err != nil {
		return err
	}
	// Creates the PriorityClass, which is not measured.
	if _, err := r.pod(ctx, o.filled, 0, o.Count); err != nil {
		return err
	}
	if o.CollectMetrics {
		if err := r.startMeasuring(ctx, []string{o.Namespace}); err != nil {
			return err
		}
	}
	measured := r.measures(o.Namespace)
	pods := r.tracker.newBatch(o.Namespace, o.Count)
	if measured {
		r.measurement.add(pods)
	}
	err := inParallel(ctx, o.Count, func(index int) error {
		// Plain pods that fill the nodes are not queued in either mode, and those that nothing waits for compete with the
		// measured ones.
		return r.createPod(ctx, o, pods, index, measured || o.SkipWaitToCompletion)
	})
	if err != nil {
		return err
	}
	pods.created = time.Now()
	if o.SkipWaitToCompletion {
		r.open = append(r.open, pods)
		return nil
	}
	if err := r.waitBound(ctx, pods); err != nil {
		return err
	}
	if o.CollectMetrics {
		return r.stopMeasuring(ctx)
	}
	return nil
}

type barrier struct {
	Opcode           string   `json:"opcode"`
	Namespaces       []string `json:"namespaces"`
	StageRequirement string   `json:"stageRequirement"`
}

func (o *barrier) resolve(surroundings) error {
	switch o.StageRequirement {
	case "", "Scheduled", "Attempted":
		return nil
	}
	return fmt.Errorf("unknown stageRequirement %q", o.StageRequirement)
}

func (o *barrier) run(ctx context.Context, r *runner) error {
	for _, pods := range r.open {
		if len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, pods.namespace) {
			continue
		}
		wait := r.waitBound
		if o.StageRequirement == "Attempted" {
			wait = r.waitAttempted
		}
		if err := wait(ctx, pods); err != nil {
			return err
		}
	}
	return nil
}

type startCollectingMetrics struct {
	Opcode     string   `json:"opcode"`
	Name       string   `json:"name"`
	Namespaces []string `json:"namespaces"`
}

func (o *startCollectingMetrics) resolve(surroundings) error {
	if len(o.Namespaces) == 0 {
		return errors.New("no namespaces")
	}
	return nil
}

func (o *startCollectingMetrics) run(ctx context.Context, r *runner) error {
	return r.startMeasuring(ctx, o.Namespaces)
}

type stopCollectingMetrics struct {
	Opcode string `json:"opcode"`
}

func (o *stopCollectingMetrics) resolve(surroundings) error { return nil }

func (o *stopCollectingMetrics) run(ctx context.Context, r *runner) error {
	return r.stopMeasuring(ctx)
}
