// Asks the API server's own library about updates of objects that do not meet a schema, and prints which it rejects.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	data, err := os.ReadFile(os.Args[1])
	must(err)
	var cases []struct {
		Name     string
		Tight    json.RawMessage
		Old, New interface{}
	}
	must(yaml.Unmarshal(data, &cases))
	for _, c := range cases {
		var given v1.JSONSchemaProps
		must(json.Unmarshal(c.Tight, &given))
		var internal apiextensions.JSONSchemaProps
		must(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&given, &internal, nil))
		structural, err := schema.NewStructural(&internal)
		must(err)
		validator, _, err := validation.NewSchemaValidator(&internal)
		must(err)
		both := common.NewCorrelatedObject(c.New, c.Old, &model.Structural{Structural: structural})
		errs := validation.ValidateCustomResourceUpdate(nil, c.New, c.Old, validator, validation.WithRatcheting(both))
		verdict := "passes"
		if len(errs) > 0 {
			verdict = "rejected"
		}
		fmt.Printf("%s: %s\n", c.Name, verdict)
	}
}
