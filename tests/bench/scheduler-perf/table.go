package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// table writes the results of runs, one JSON object per line, as a table with the ratios of both modes.
func table(from io.Reader, to io.Writer) error {
	var results []result
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var it result
		if err := json.Unmarshal(lines.Bytes(), &it); err != nil {
			return fmt.Errorf("read results: %w", err)
		}
		results = append(results, it)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	columns := []string{"case", "mode", "pods", "bound", "seconds", "after last", "victims", "measured", "broken gangs",
		"writes/pod", "later/pod", "ratio"}
	fmt.Fprintln(out, strings.Join(columns, "\t"))
	for index := range results {
		it := &results[index]
		fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%.2f\t%.2f\t%d\t%d\t%s\t%.1f\t%.1f\t%s\n", it.Case, it.Mode, it.Pods, it.Bound,
			it.Seconds, it.SecondsAfterLast, it.Victims, it.MeasuredVictims, it.gangs(), it.perPod(it.WritesTotal), it.perPod(it.WritesLater), ratio(results, it))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	for index := range results {
		if it := &results[index]; it.NotBound != "" {
			fmt.Fprintf(to, "\n%s, %s: %s\n", it.Case, it.Mode, it.NotBound)
			for _, reason := range slices.Sorted(maps.Keys(it.Pending)) {
				fmt.Fprintf(to, "  %d pods: %s\n", it.Pending[reason], reason)
			}
		}
	}
	return nil
}

func (r *result) gangs() string {
	text := fmt.Sprintf("%d of %d", r.BrokenGangs, r.Gangs)
	if r.PartlyBound > 0 {
		text += fmt.Sprintf(" (%d partly bound)", r.PartlyBound)
	}
	return text
}

func (r *result) perPod(count int) float64 {
	if r.Pods == 0 {
		return 0
	}
	return float64(count) / float64(r.Pods)
}

// allWrites are those during and after the measured phase: lockkeeper writes most events later than kube-scheduler.
func (r *result) allWrites() float64 { return r.perPod(r.WritesTotal + r.WritesLater) }

// ratio returns time and writes of lockkeeper, divided by those of kube-scheduler in the same case.
func ratio(results []result, of *result) string {
	if of.Mode != "lockkeeper" {
		return ""
	}
	for index := range results {
		other := &results[index]
		if other.Case != of.Case || other.Mode == of.Mode {
			continue
		}
		var ratios []string
		if of.NotBound == "" && other.NotBound == "" && other.Seconds > 0 {
			ratios = append(ratios, fmt.Sprintf("time %.2f", of.Seconds/other.Seconds))
		}
		if of.NotBound == "" && other.NotBound == "" && other.allWrites() > 0 {
			ratios = append(ratios, fmt.Sprintf("writes %.2f", of.allWrites()/other.allWrites()))
		}
		return strings.Join(ratios, ", ")
	}
	return ""
}
