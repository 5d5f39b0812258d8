package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// configFolders are the folders of scheduler_perf whose cases are about gangs and preemption.
var configFolders = []string{"workload_preemption", "default_preemption", "podgroup/gangscheduling", "starvation"}

// testCase has the fields of a case of scheduler_perf that are read here; any other one is an error.
type testCase struct {
	Name                   string            `json:"name"`
	Labels                 []string          `json:"labels"`
	FeatureGates           map[string]bool   `json:"featureGates"`
	DefaultPodTemplatePath string            `json:"defaultPodTemplatePath"`
	WorkloadTemplate       []json.RawMessage `json:"workloadTemplate"`
	Workloads              []workload        `json:"workloads"`
	// Names metrics of kube-scheduler, which both modes do not have.
	MetricsCollectorConfig json.RawMessage `json:"metricsCollectorConfig"`
}

// workload is a set of parameters of a case.
type workload struct {
	Name         string          `json:"name"`
	Labels       []string        `json:"labels"`
	FeatureGates map[string]bool `json:"featureGates"`
	Params       parameters      `json:"params"`
	// The throughput below which scheduler_perf fails; it is that of other machines.
	Threshold json.RawMessage `json:"threshold"`
}

// parameters are the values that `$name` stands for in operations.
type parameters map[string]any

// session is one workload of one case, ready to run.
type session struct {
	name         string
	labels       []string
	featureGates map[string]bool
	operations   []operation
}

// readSessions reads all workloads of all cases below the folder of scheduler_perf.
func readSessions(root string) ([]session, error) {
	var sessions []session
	for _, folder := range configFolders {
		path := filepath.Join(root, folder, "performance-config.yaml")
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read cases: %w", err)
		}
		var cases []testCase
		if err := yaml.UnmarshalStrict(content, &cases); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, it := range cases {
			of, err := it.sessions(filepath.Dir(path), folder)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			sessions = append(sessions, of...)
		}
	}
	return sessions, nil
}

func (c *testCase) sessions(directory, folder string) ([]session, error) {
	var sessions []session
	for _, it := range c.Workloads {
		name := strings.Join([]string{folder, c.Name, it.Name}, "/")
		operations, err := c.operations(surroundings{directory: directory, params: it.Params})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		gates := map[string]bool{}
		maps.Copy(gates, c.FeatureGates)
		maps.Copy(gates, it.FeatureGates)
		sessions = append(sessions, session{
			name:         name,
			labels:       slices.Concat(c.Labels, it.Labels),
			featureGates: gates,
			operations:   operations,
		})
	}
	return sessions, nil
}

// surroundings are what the operations of a workload need to be resolved.
type surroundings struct {
	directory string
	params    parameters
}

func (c *testCase) operations(in surroundings) ([]operation, error) {
	var operations []operation
	for index, raw := range c.WorkloadTemplate {
		var head struct {
			Opcode string `json:"opcode"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return nil, fmt.Errorf("operation %d: %w", index, err)
		}
		op, err := newOperation(head.Opcode, fmt.Sprintf("namespace-%d", index))
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", index, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		// A field that is not read here would change what is measured.
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(op); err != nil {
			return nil, fmt.Errorf("operation %d (%s): %w", index, head.Opcode, err)
		}
		if pods, ok := op.(*createPods); ok && pods.PodTemplatePath == "" {
			pods.PodTemplatePath = c.DefaultPodTemplatePath
		}
		if err := op.resolve(in); err != nil {
			return nil, fmt.Errorf("operation %d (%s): %w", index, head.Opcode, err)
		}
		operations = append(operations, op)
	}
	return operations, nil
}

// count returns the value of a count or, if it is set, of the parameter `$name` in its place.
func (p parameters) count(value int, parameter string) (int, error) {
	if parameter == "" {
		return value, nil
	}
	name, ok := strings.CutPrefix(parameter, "$")
	if !ok {
		return 0, fmt.Errorf("parameter %q does not begin with $", parameter)
	}
	number, ok := p[name].(float64)
	if !ok {
		return 0, fmt.Errorf("parameter %q is no number: %v", name, p[name])
	}
	return int(number), nil
}

// values returns template parameters with the value of each `$name`, or the default of `$name|default`.
func (p parameters) values(of map[string]any) (map[string]any, error) {
	resolved := map[string]any{}
	for key, value := range of {
		text, _ := value.(string)
		reference, ok := strings.CutPrefix(text, "$")
		if !ok {
			resolved[key] = value
			continue
		}
		name, fallback, hasFallback := strings.Cut(reference, "|")
		found, ok := p[name]
		if !ok && !hasFallback {
			return nil, fmt.Errorf("there is no parameter %q", name)
		}
		if !ok {
			if err := yaml.Unmarshal([]byte(fallback), &found); err != nil {
				return nil, fmt.Errorf("default of parameter %q: %w", name, err)
			}
		}
		resolved[key] = found
	}
	return resolved, nil
}

// gates returns feature gates as a flag has them.
func gates(of map[string]bool) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%s=%t", name, of[name]))
	}
	return strings.Join(list, ",")
}
