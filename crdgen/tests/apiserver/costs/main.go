// Says what the API server's own library estimates that each expression costs, in the definitions and policies of a file.
//
// An estimate is made at the limits of the schema. Which limit it hangs on is found by halving each in turn.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// Cost is one expression, its place in the schema, and its estimated cost.
type Cost struct {
	Definition string `json:"definition"`
	// Policy is the name of the policy; empty if the expression is in the schema.
	Policy     string `json:"policy,omitempty"`
	Place      string `json:"place"`
	Expression string `json:"expression"`
	// Message is the message of the rule, which identifies it.
	Message string `json:"message"`
	// Often is how many values there are at most at the place.
	Often uint64 `json:"often"`
	Cost  uint64 `json:"cost"`
	// Detail is what the expression for the message costs.
	Detail uint64 `json:"detail"`
	// HangsOn are the limits that make the cost smallest if one of them is halved, and Halved is that cost.
	HangsOn []string `json:"hangsOn,omitempty"`
	Halved  uint64   `json:"halved,omitempty"`
}

// Record is the committed result: the tests detect an outdated one by the limits, without Go.
type Record struct {
	Library string                      `json:"library"`
	Limits  map[string]map[string]int64 `json:"limits"`
	Writes  []Write                     `json:"writes"`
	Costs   []Cost                      `json:"costs"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	definitions, policies := read(os.Args[1])
	record := Record{Library: library(), Limits: map[string]map[string]int64{}, Writes: writes(definitions)}
	for _, definition := range definitions {
		rejectInvalid(definition)
		record.ofDefinition(definition, policies)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	must(out.Encode(record))
}

func library() string {
	const name = "k8s.io/apiextensions-apiserver"
	info, _ := debug.ReadBuildInfo()
	for _, it := range info.Deps {
		if it.Path == name {
			return name + " " + it.Version
		}
	}
	panic(name + " is not among the modules")
}

func read(path string) ([]v1.CustomResourceDefinition, []admission.ValidatingAdmissionPolicy) {
	data, err := os.ReadFile(path)
	must(err)
	var definitions []v1.CustomResourceDefinition
	var policies []admission.ValidatingAdmissionPolicy
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	for {
		document := make([]byte, len(data))
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return definitions, policies
		}
		must(err)
		var kind struct{ Kind string }
		must(yaml.Unmarshal(document[:n], &kind))
		switch kind.Kind {
		case "CustomResourceDefinition":
			var it v1.CustomResourceDefinition
			must(yaml.Unmarshal(document[:n], &it))
			v1.SetDefaults_CustomResourceDefinitionSpec(&it.Spec)
			definitions = append(definitions, it)
		case "ValidatingAdmissionPolicy":
			var it admission.ValidatingAdmissionPolicy
			must(yaml.Unmarshal(document[:n], &it))
			// Guards are about the sender of a request, which no schema has.
			if !strings.Contains(it.Name, ".guard.") {
				policies = append(policies, it)
			}
		}
	}
}

// An expression over the limits is rejected here, with the words of the API server.
func rejectInvalid(definition v1.CustomResourceDefinition) {
	definition = *definition.DeepCopy()
	v1.SetDefaults_CustomResourceDefinition(&definition)
	if len(definition.Status.StoredVersions) == 0 {
		definition.Status.StoredVersions = []string{definition.Spec.Versions[0].Name}
	}
	var in apiextensions.CustomResourceDefinition
	must(v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&definition, &in, nil))
	prunes := false
	in.Spec.PreserveUnknownFields = &prunes
	if problems := validation.ValidateCustomResourceDefinition(context.Background(), &in); len(problems) > 0 {
		panic(problems.ToAggregate())
	}
}

func (record *Record) ofDefinition(definition v1.CustomResourceDefinition, policies []admission.ValidatingAdmissionPolicy) {
	for _, version := range definition.Spec.Versions {
		var schema apiextensions.JSONSchemaProps
		must(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &schema, nil))
		estimate := func() []Cost {
			var costs []Cost
			walk(validation.RootCELContext(&schema), &schema, version.Name, func(it Cost) { costs = append(costs, it) })
			for _, policy := range policies {
				if about := policy.Spec.MatchConstraints.ResourceRules[0]; about.APIGroups[0] == definition.Spec.Group &&
					about.Resources[0] == definition.Spec.Names.Plural {
					costs = append(costs, ofPolicy(policy, schema, version.Name)...)
				}
			}
			return costs
		}
		costs, known := estimate(), map[string]int64{}
		limits(&schema, version.Name, func(name string, limit *int64) {
			was := *limit
			*limit, known[name] = was/2, was
			for i, halved := range estimate() {
				costs[i].hangOn(fmt.Sprintf("%s %d", name, was), halved.Cost)
			}
			*limit = was
		})
		record.Limits[definition.Name] = known
		for _, it := range costs {
			it.Definition = definition.Name
			record.Costs = append(record.Costs, it)
		}
	}
}

func (cost *Cost) hangOn(limit string, halved uint64) {
	if halved >= cost.Cost || (len(cost.HangsOn) > 0 && halved > cost.Halved) {
		return
	}
	if len(cost.HangsOn) > 0 && halved < cost.Halved {
		cost.HangsOn = nil
	}
	cost.HangsOn, cost.Halved = append(cost.HangsOn, limit), halved
}

// Visits the schema as the validation of definitions does.
func walk(at *validation.CELSchemaContext, schema *apiextensions.JSONSchemaProps, place string, found func(Cost)) {
	if len(schema.XValidations) > 0 {
		info, err := at.TypeInfo()
		must(err)
		results, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit, environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
		must(err)
		for i, it := range results {
			if it.Error != nil {
				panic(it.Error)
			}
			often := it.MaxCardinality
			if at.MaxCardinality != nil {
				often = *at.MaxCardinality
			}
			rule := schema.XValidations[i]
			found(Cost{Place: place, Expression: rule.Rule, Message: rule.Message, Often: often, Cost: times(it.MaxCost, often), Detail: it.MessageExpressionMaxCost})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		inner := schema.Properties[name]
		walk(at.ChildPropertyContext(&inner, name), &inner, place+"."+name, found)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(at.ChildItemsContext(schema.Items.Schema), schema.Items.Schema, place+"[]", found)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		inner := schema.AdditionalProperties.Schema
		walk(at.ChildAdditionalPropertiesContext(inner), inner, place+"[]", found)
	}
}

func times(cost, often uint64) uint64 {
	if cost != 0 && math.MaxUint64/cost < often {
		return math.MaxUint64
	}
	return cost * often
}

var object, oldObject = regexp.MustCompile(`\bobject\.`), regexp.MustCompile(`\boldObject\b`)

// A policy sees objects without a type, so the API server estimates nothing. Asked as rules of the schema's root,
// its expressions have the types and the limits of the schema.
func ofPolicy(policy admission.ValidatingAdmissionPolicy, schema apiextensions.JSONSchemaProps, place string) []Cost {
	root := apiextensions.JSONSchemaProps{Type: "object", Properties: plain(schema).Properties}
	for _, it := range policy.Spec.Validations {
		rule := oldObject.ReplaceAllString(object.ReplaceAllString(it.Expression, "self."), "oldSelf")
		root.XValidations = append(root.XValidations, apiextensions.ValidationRule{Rule: rule, Message: it.Message})
	}
	var out []Cost
	walk(validation.RootCELContext(&root), &root, place, func(cost Cost) {
		cost.Policy, cost.Expression = policy.Name, policy.Spec.Validations[len(out)].Expression
		out = append(out, cost)
	})
	return out
}

// The schema without expressions, but with its limits as they are now.
func plain(schema apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	out := schema.DeepCopy()
	strip(out)
	return out
}

func strip(schema *apiextensions.JSONSchemaProps) {
	schema.XValidations = nil
	for name, inner := range schema.Properties {
		strip(&inner)
		schema.Properties[name] = inner
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		strip(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		strip(schema.AdditionalProperties.Schema)
	}
}

// Calls `visit` for each limit of the schema.
func limits(schema *apiextensions.JSONSchemaProps, place string, visit func(string, *int64)) {
	names := []string{"maxItems", "maxLength", "maxProperties"}
	for i, limit := range []*int64{schema.MaxItems, schema.MaxLength, schema.MaxProperties} {
		if limit != nil {
			visit(place+" "+names[i], limit)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		inner := schema.Properties[name]
		limits(&inner, place+"."+name, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		limits(schema.Items.Schema, place+"[]", visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		limits(schema.AdditionalProperties.Schema, place+"[]", visit)
	}
}
