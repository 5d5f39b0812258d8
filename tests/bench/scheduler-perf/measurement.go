package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// measurement is the phase of a run in which its measured pods are created and bound.
type measurement struct {
	namespaces []string
	begun      time.Time
	ended      time.Time
	batches    []*batch
	// How many pods were bound at its end, and when the last one was.
	bound     int
	lastBound time.Time
	// The counters of the API server at its begin and its end, what was added, and what was added after its end.
	before, after, writes, later map[string]int
	// What this program wrote itself.
	mutex sync.Mutex
	own   map[string]int
}

// result is what one run has measured.
type result struct {
	Case string `json:"case"`
	Mode string `json:"mode"`
	// The measured pods, and how many of them were bound.
	Pods     int    `json:"pods"`
	Bound    int    `json:"bound"`
	NotBound string `json:"notBound,omitempty"`
	// From the first creation, and from the last one, until the last pod was bound.
	Seconds          float64 `json:"seconds"`
	SecondsAfterLast float64 `json:"secondsAfterLastCreation"`
	// Bound pods that others deleted, and pods that were deleted before they were bound, in the whole run.
	Victims int `json:"victims"`
	// Those of them that are measured pods.
	MeasuredVictims int `json:"measuredVictims"`
	Removed         int `json:"deletedBeforeBound"`
	// PodGroups with the policy gang, those broken by preemption, and those that are bound in part.
	Gangs       int `json:"gangs"`
	BrokenGangs int `json:"brokenGangs"`
	PartlyBound int `json:"partlyBoundGangs"`
	// Requests that write, without those of this program.
	Writes      map[string]int `json:"writes"`
	WritesTotal int            `json:"writesTotal"`
	// Those after the last pod was bound, as events are written later.
	WritesLater int `json:"writesLater"`
	// Why pods are pending, if the run did not finish.
	Pending map[string]int `json:"pending,omitempty"`
}

func (r *runner) startMeasuring(ctx context.Context, namespaces []string) error {
	if r.measurement != nil {
		return errors.New("a case with two measured phases")
	}
	before, err := r.serverWrites(ctx)
	if err != nil {
		return err
	}
	r.measurement = &measurement{namespaces: namespaces, begun: time.Now(), before: before, own: map[string]int{}}
	return nil
}

// measures says whether pods that are created now in a namespace are measured.
func (r *runner) measures(namespace string) bool {
	m := r.measurement
	return m != nil && m.writes == nil && slices.Contains(m.namespaces, namespace)
}

func (m *measurement) add(pods *batch) {
	m.batches = append(m.batches, pods)
}

func (r *runner) countWrite(what string) {
	m := r.measurement
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.own[what]++
}

func (r *runner) stopMeasuring(ctx context.Context) error {
	m := r.measurement
	if m == nil {
		return errors.New("stopCollectingMetrics without a start")
	}
	m.ended, m.bound = time.Now(), 0
	for _, it := range m.batches {
		bound, last, _ := r.tracker.progress(it)
		m.bound += bound
		m.lastBound = later(m.lastBound, last)
	}
	// What they write must be known when the counters are read.
	r.endChurns()
	after, err := r.serverWrites(ctx)
	if err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.after = after
	m.writes = map[string]int{}
	for what, count := range after {
		if added := count - m.before[what] - m.own[what]; added != 0 {
			m.writes[what] = added
		}
	}
	return nil
}

// settle waits until no component writes any more, and counts what was written after the measured phase.
func (r *runner) settle(ctx context.Context) error {
	m := r.measurement
	last, unchanged := -1, time.Now()
	for begun := time.Now(); time.Since(begun) < settleMax && time.Since(unchanged) < settleInterval; {
		time.Sleep(settleInterval / 4)
		writes, err := r.serverWrites(ctx)
		if err != nil {
			return err
		}
		m.later = map[string]int{}
		total := 0
		for what, count := range writes {
			m.later[what] = count - m.after[what]
			total += count
		}
		if total != last {
			last, unchanged = total, time.Now()
		}
	}
	return nil
}

var writeMetric = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)
var metricLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)

// serverWrites returns the number of writes that the API server has answered, by verb and resource.
func (r *runner) serverWrites(ctx context.Context) (map[string]int, error) {
	text, err := r.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	writes := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		match := writeMetric.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		labels := map[string]string{}
		for _, it := range metricLabel.FindAllStringSubmatch(match[1], -1) {
			labels[it[1]] = it[2]
		}
		// Leases are renewed at their own rate.
		if !isWrite(labels["verb"]) || labels["resource"] == "leases" || labels["dry_run"] != "" {
			continue
		}
		count, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			return nil, fmt.Errorf("read metrics: %w", err)
		}
		what := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			what += "/" + labels["subresource"]
		}
		writes[what] += int(count)
	}
	return writes, lines.Err()
}

func isWrite(verb string) bool {
	switch verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		return true
	}
	return false
}

func (r *runner) result(of session, unbound *notBound) *result {
	out := &result{Case: of.name, Mode: "kube-scheduler", Gangs: len(r.minCounts), Writes: map[string]int{}}
	if r.queue != "" {
		out.Mode = "lockkeeper"
	}
	if unbound != nil {
		out.NotBound = unbound.Error()
	}
	out.BrokenGangs, out.PartlyBound = r.tracker.gangs(r.minCounts)
	r.tracker.mutex.Lock()
	defer r.tracker.mutex.Unlock()
	out.Victims, out.Removed = r.tracker.victims, r.tracker.removed
	m := r.measurement
	if m == nil {
		return out
	}
	last, created := m.lastBound, time.Time{}
	for _, it := range m.batches {
		out.MeasuredVictims += it.victims
		out.Pods += it.total
		created = later(created, it.created)
	}
	out.Bound = m.bound
	if out.Bound < out.Pods {
		last = m.ended
	}
	out.Seconds = seconds(last.Sub(m.begun))
	if !created.IsZero() {
		out.SecondsAfterLast = max(0, seconds(last.Sub(created)))
	}
	out.Writes = m.writes
	for count := range maps.Values(m.writes) {
		out.WritesTotal += count
	}
	for count := range maps.Values(m.later) {
		out.WritesLater += count
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func seconds(of time.Duration) float64 { return math.Round(of.Seconds()*1000) / 1000 }
