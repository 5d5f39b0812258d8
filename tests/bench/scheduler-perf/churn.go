package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

type churn struct {
	Opcode               string   `json:"opcode"`
	Mode                 string   `json:"mode"`
	Number               int      `json:"number"`
	IntervalMilliseconds int      `json:"intervalMilliseconds"`
	Namespace            string   `json:"namespace"`
	TemplatePaths        []string `json:"templatePaths"`

	filled []*objectTemplate
}

func (o *churn) resolve(in surroundings) error {
	if o.Mode != "create" && o.Mode != "recreate" {
		return fmt.Errorf("unknown mode %q", o.Mode)
	}
	if o.Mode == "recreate" && o.Number <= 0 {
		return errors.New("the mode recreate needs a number")
	}
	for _, path := range o.TemplatePaths {
		filled, err := readTemplate(filepath.Join(in.directory, path), nil)
		if err != nil {
			return err
		}
		o.filled = append(o.filled, filled)
	}
	return nil
}

func (o *churn) run(ctx context.Context, r *runner) error {
	if err := r.ensureNamespace(ctx, o.Namespace); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	r.stopChurns = append(r.stopChurns, func() {
		stop()
		<-done
	})
	go func() {
		defer close(done)
		o.churn(ctx, r)
	}()
	return nil
}

// churn creates pods at its rate; in the mode recreate, a place that has a pod loses it the next time.
func (o *churn) churn(ctx context.Context, r *runner) {
	ticker := time.NewTicker(time.Duration(o.IntervalMilliseconds) * time.Millisecond)
	defer ticker.Stop()
	places := make([]string, o.Number*len(o.filled))
	for round := 0; o.Mode == "recreate" || o.Number == 0 || round < o.Number; round++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for index, template := range o.filled {
			if o.Mode == "create" {
				r.createChurnPod(ctx, o.Namespace, template)
				continue
			}
			place := &places[round%o.Number*len(o.filled)+index]
			if *place == "" {
				*place = r.createChurnPod(ctx, o.Namespace, template)
			} else {
				r.deletePod(ctx, o.Namespace, *place)
				*place = ""
			}
		}
	}
}
