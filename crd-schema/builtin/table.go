// Prints the fields of all kinds that a Kubernetes API server has, as Go
// decodes and encodes them. See generate.sh.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Types with a decoder of their own.
var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                            "quantity",
	reflect.TypeFor[metav1.Time]():                                  "time",
	reflect.TypeFor[metav1.MicroTime]():                             "microtime",
	reflect.TypeFor[metav1.Duration]():                              "duration",
	reflect.TypeFor[metav1.FieldsV1]():                              "object",
	reflect.TypeFor[intstr.IntOrString]():                           "intorstring",
	reflect.TypeFor[runtime.RawExtension]():                         "object",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaProps]():              "",
}

// Collects the definitions that the kinds need.
type collector struct {
	names   map[reflect.Type]string
	pending []reflect.Type
}

// Shortens k8s.io/api/apps/v1.Deployment to apps/v1.Deployment.
func name(of reflect.Type) string {
	path := of.PkgPath()
	for _, prefix := range []string{"k8s.io/api/", "k8s.io/apimachinery/pkg/apis/", "k8s.io/apiextensions-apiserver/pkg/apis/", "k8s.io/kube-aggregator/pkg/apis/"} {
		path = strings.TrimPrefix(path, prefix)
	}
	return path + "." + of.Name()
}

func (c *collector) define(of reflect.Type) string {
	if known, ok := c.names[of]; ok {
		return known
	}
	c.names[of] = name(of)
	c.pending = append(c.pending, of)
	return c.names[of]
}

// The type of a value that is not null.
func (c *collector) typeOf(of reflect.Type) string {
	if text := special[of]; text != "" {
		return text
	}
	if _, ok := special[of]; !ok && reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		fail("%v has a decoder of its own", of)
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64, reflect.Int:
		return "int64"
	case reflect.Float64:
		return "float64"
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + c.typeOf(of.Elem())
	case reflect.Map:
		if of.Key().Kind() != reflect.String {
			fail("%v has keys that are not texts", of)
		}
		return "{}" + c.typeOf(of.Elem())
	case reflect.Pointer:
		// Pointers in lists and maps: null stays null.
		return "*" + c.typeOf(of.Elem())
	case reflect.Struct:
		return c.define(of)
	}
	fail("%v is of an unknown kind", of)
	return ""
}

// Prints the fields of a struct, those of embedded structs in place.
func (c *collector) fields(of reflect.Type, out *[]string) {
	for i := range of.NumField() {
		field := of.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if tag[0] == "-" {
			continue
		}
		if tag[0] == "" {
			if !field.Anonymous {
				fail("%v.%s has no name", of, field.Name)
			}
			c.fields(field.Type, out)
			continue
		}
		fieldType, flags := field.Type, ""
		if fieldType.Kind() == reflect.Pointer {
			fieldType, flags = fieldType.Elem(), "*"
		}
		for _, option := range tag[1:] {
			switch option {
			case "omitempty":
				flags += "?"
			case "omitzero":
				flags += "!"
			default:
				fail("%v.%s has the option %s", of, field.Name, option)
			}
		}
		line := " " + tag[0] + " " + c.typeOf(fieldType)
		if flags != "" {
			line += " " + flags
		}
		*out = append(*out, line)
	}
}

// The releases that introduce, deprecate and remove a kind, and the kind that
// replaces it; "-" for what there is not.
func lifecycle(of reflect.Type) string {
	object := reflect.New(of).Interface()
	release := func(major, minor int) string { return fmt.Sprintf("%d.%d", major, minor) }
	introduced, deprecated, removed, replacement := "-", "-", "-", "- -"
	if it, ok := object.(interface{ APILifecycleIntroduced() (int, int) }); ok {
		introduced = release(it.APILifecycleIntroduced())
	}
	if it, ok := object.(interface{ APILifecycleDeprecated() (int, int) }); ok {
		deprecated = release(it.APILifecycleDeprecated())
	}
	if it, ok := object.(interface{ APILifecycleRemoved() (int, int) }); ok {
		removed = release(it.APILifecycleRemoved())
	}
	if it, ok := object.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		kind := it.APILifecycleReplacement()
		replacement = fmt.Sprintf("%s %s", kind.GroupVersion(), kind.Kind)
	}
	return fmt.Sprintf("%s %s %s %s", introduced, deprecated, removed, replacement)
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

func main() {
	known := scheme.Scheme
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(known); err != nil {
			fail("%v", err)
		}
	}
	types := &collector{names: map[reflect.Type]string{}}
	var lines []string
	for kind, of := range known.AllKnownTypes() {
		field, ok := of.FieldByName("ObjectMeta")
		if kind.Version == runtime.APIVersionInternal || !ok || !field.Anonymous {
			continue
		}
		lines = append(lines, fmt.Sprintf("kind %s %s %s %s", kind.GroupVersion(), kind.Kind, types.define(of), lifecycle(of)))
	}
	var definitions []string
	for len(types.pending) > 0 {
		of := types.pending[0]
		types.pending = types.pending[1:]
		block := []string{"type " + types.names[of]}
		types.fields(of, &block)
		definitions = append(definitions, strings.Join(block, "\n"))
	}
	sort.Strings(lines)
	sort.Strings(definitions)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, line := range append(lines, definitions...) {
		fmt.Fprintln(out, line)
	}
}
