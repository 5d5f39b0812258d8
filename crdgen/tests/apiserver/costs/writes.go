package main

import (
	"context"
	_ "embed"
	"fmt"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

// Write is what the expressions of a definition allocate when an object is written.
type Write struct {
	Write       string `json:"write"`
	Definition  string `json:"definition"`
	Allocations int64  `json:"allocations"`
	Kibibytes   int64  `json:"kibibytes"`
}

//go:embed writes.yaml
var typical []byte

func writes(definitions []v1.CustomResourceDefinition) []Write {
	var cases []struct {
		Write  string         `json:"write"`
		Old    map[string]any `json:"old"`
		Object map[string]any `json:"object"`
	}
	text, err := yaml.YAMLToJSON(typical)
	must(err)
	// Numbers without a point are integers, as in the server.
	must(json.Unmarshal(text, &cases))
	var out []Write
	for _, it := range cases {
		definition := definitionOf(definitions, it.Object["kind"].(string))
		nodes := structuralOf(definition)
		validator := cel.NewValidator(nodes, true, celconfig.PerCallLimit)
		result := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				same := cel.WithRatcheting(common.NewCorrelatedObject(it.Object, it.Old, nil))
				problems, _ := validator.Validate(context.Background(), nil, nodes, it.Object, it.Old, celconfig.RuntimeCELCostBudget, same)
				must(problems.ToAggregate())
			}
		})
		bytes := result.AllocedBytesPerOp()
		out = append(out, Write{it.Write, definition.Name, result.AllocsPerOp(), (bytes + 512) / 1024})
	}
	return out
}

func definitionOf(definitions []v1.CustomResourceDefinition, kind string) v1.CustomResourceDefinition {
	for _, it := range definitions {
		if it.Spec.Names.Kind == kind {
			return it
		}
	}
	panic(fmt.Sprintf("there is no definition of %s", kind))
}

func structuralOf(definition v1.CustomResourceDefinition) *schema.Structural {
	var in apiextensions.JSONSchemaProps
	must(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &in, nil))
	out, err := schema.NewStructural(&in)
	must(err)
	return out
}
