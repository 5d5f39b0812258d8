package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// objectTemplate is a file of scheduler_perf from which the objects of an operation are made.
type objectTemplate struct {
	path   string
	parsed *template.Template
	values map[string]any
}

func readTemplate(path string, values map[string]any) (*objectTemplate, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	parsed, err := template.New("object").Funcs(templateFunctions).Parse(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &objectTemplate{path: path, parsed: parsed, values: values}, nil
}

// fill makes one of count objects; a field that the object does not have is an error.
func (t *objectTemplate) fill(index, count int, object any) error {
	values := maps.Clone(t.values)
	if values == nil {
		values = map[string]any{}
	}
	values["Index"] = index
	values["Count"] = count
	var text bytes.Buffer
	if err := t.parsed.Execute(&text, values); err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	if err := yaml.UnmarshalStrict(text.Bytes(), object); err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	return nil
}

// templateFunctions have the names and the results of those of scheduler_perf: integers are computed as floating-point
// numbers, and then rounded towards zero.
var templateFunctions = template.FuncMap{
	"AddFloat":      add,
	"AddInt":        func(numbers ...any) (int, error) { return whole(add(numbers...)) },
	"DivideFloat":   divide,
	"DivideInt":     func(a, b any) (int, error) { return whole(divide(a, b)) },
	"Int":           func(value any) (int, error) { return whole(number(value)) },
	"JSON":          toJSON,
	"Mod":           modulo,
	"MultiplyFloat": multiply,
	"MultiplyInt":   func(numbers ...any) (int, error) { return whole(multiply(numbers...)) },
	"SubtractFloat": subtract,
	"SubtractInt":   func(a, b any) (int, error) { return whole(subtract(a, b)) },
}

func number(value any) (float64, error) {
	switch it := value.(type) {
	case float64:
		return it, nil
	case int:
		return float64(it), nil
	case string:
		return strconv.ParseFloat(it, 64)
	}
	return 0, fmt.Errorf("%v (%T) is no number", value, value)
}

func whole(value float64, err error) (int, error) { return int(value), err }

func fold(first float64, numbers []any, join func(a, b float64) float64) (float64, error) {
	for _, it := range numbers {
		value, err := number(it)
		if err != nil {
			return 0, err
		}
		first = join(first, value)
	}
	return first, nil
}

func add(numbers ...any) (float64, error) {
	return fold(0, numbers, func(a, b float64) float64 { return a + b })
}

func multiply(numbers ...any) (float64, error) {
	return fold(1, numbers, func(a, b float64) float64 { return a * b })
}

func both(a, b any) (float64, float64, error) {
	left, err := number(a)
	if err != nil {
		return 0, 0, err
	}
	right, err := number(b)
	return left, right, err
}

func subtract(a, b any) (float64, error) {
	left, right, err := both(a, b)
	return left - right, err
}

func divide(a, b any) (float64, error) {
	left, right, err := both(a, b)
	if err == nil && right == 0 {
		err = fmt.Errorf("%v is divided by zero", a)
	}
	return left / right, err
}

func modulo(a, b any) (int, error) {
	left, right, err := both(a, b)
	if err == nil && int(right) == 0 {
		err = fmt.Errorf("%v modulo zero", a)
	}
	if err != nil {
		return 0, err
	}
	return int(left) % int(right), nil
}

func toJSON(value any) (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSpace(text.String()), err
}
