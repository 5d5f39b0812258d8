// Validates the schemas in a file of cases with the API server's own library, and prints its errors for each.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var cases []struct {
		Name   string
		Schema json.RawMessage
		Status bool
	}
	if err := yaml.Unmarshal(data, &cases); err != nil {
		panic(err)
	}
	for _, c := range cases {
		sub := "{}"
		if c.Status {
			sub = `{"status":{}}`
		}
		text := `{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Thing","plural":"things","singular":"thing","listKind":"ThingList"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":` + sub + `,"schema":{"openAPIV3Schema":` + string(c.Schema) + `}}]},"status":{"storedVersions":["v1"]}}`
		var crd v1.CustomResourceDefinition
		fmt.Println(c.Name)
		if err := json.Unmarshal([]byte(text), &crd); err != nil {
			fmt.Println("  DECODE", err)
			continue
		}
		v1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		var in apiextensions.CustomResourceDefinition
		if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &in, nil); err != nil {
			fmt.Println("  CONVERT", err)
			continue
		}
		// The conversion of a single version's schema moves it to the top, where pruning must be requested.
		prunes := false
		in.Spec.PreserveUnknownFields = &prunes
		for _, e := range validation.ValidateCustomResourceDefinition(context.Background(), &in) {
			s := e.Error()
			s = strings.ReplaceAll(s, "spec.validation.openAPIV3Schema", "…")
			s = strings.ReplaceAll(s, "spec.versions[0].schema.openAPIV3Schema", "…")
			fmt.Println("  " + strings.SplitN(s, "\n", 2)[0])
		}
	}
}
