// Prints how the lists and maps of the types of Kubernetes are merged. See generate.sh.
package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Shortens io.k8s.api.core.v1.PodSpec to core/v1.PodSpec.
func name(full string) string {
	for _, prefix := range []string{"io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apiextensions-apiserver.pkg.apis.", "io.k8s.kube-aggregator.pkg.apis."} {
		full = strings.TrimPrefix(full, prefix)
	}
	parts := strings.Split(full, ".")
	if len(parts) != 3 {
		return full
	}
	return parts[0] + "/" + parts[1] + "." + parts[2]
}

// The word for a relation that is not the usual one: lists are atomic, maps are not.
func relation(atom schema.Atom) string {
	switch {
	case atom.List != nil && atom.List.ElementRelationship == schema.Associative && len(atom.List.Keys) == 0:
		return "set"
	case atom.List != nil && atom.List.ElementRelationship == schema.Associative:
		return strings.Join(atom.List.Keys, ",")
	case atom.Map != nil && atom.Map.ElementRelationship == schema.Atomic:
		return "atomic"
	}
	return ""
}

func main() {
	source, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	_, text, _ := strings.Cut(string(source), "typed.YAMLObject(`")
	text, _, _ = strings.Cut(text, "`)")
	parser, err := typed.NewParser(typed.YAMLObject(text))
	if err != nil {
		panic(err)
	}
	var lines []string
	for _, definition := range parser.Schema.Types {
		if strings.HasPrefix(definition.Name, "__") || definition.Map == nil {
			continue
		}
		if word := relation(definition.Atom); word != "" {
			lines = append(lines, fmt.Sprintf("%s . %s", name(definition.Name), word))
		}
		for _, field := range definition.Map.Fields {
			atom := field.Type.Inlined
			if word := relation(atom); word != "" {
				lines = append(lines, fmt.Sprintf("%s %s %s", name(definition.Name), field.Name, word))
			}
		}
	}
	sort.Strings(lines)
	fmt.Println(strings.Join(lines, "\n"))
}
