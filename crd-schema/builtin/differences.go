// Prints how the tables of older releases differ from newer ones: for each
// file after the first one, the lines that turn the table of the file before
// it into this one. See generate.sh.
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// A table: the kinds by version and name, and the types with their fields.
type table struct {
	kinds map[string]string
	types map[string]map[string]string
}

func read(path string) table {
	text, err := os.ReadFile(path)
	if err != nil {
		fail(err)
	}
	out := table{kinds: map[string]string{}, types: map[string]map[string]string{}}
	current := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		words := strings.SplitN(line, " ", 4)
		switch {
		case words[0] == "kind":
			out.kinds[words[1]+" "+words[2]] = words[3]
		case words[0] == "type":
			current = map[string]string{}
			out.types[words[1]] = current
		case words[0] == "" && len(words) > 2:
			current[words[1]] = strings.Join(words[2:], " ")
		}
	}
	return out
}

// Prints the lines of removed and changed entries, in the order of their names.
func entries(newer, older map[string]string, removed, changed string) []string {
	var lines []string
	for name := range newer {
		if _, ok := older[name]; !ok {
			lines = append(lines, removed+name)
		}
	}
	for name, text := range older {
		if known, ok := newer[name]; !ok || known != text {
			lines = append(lines, changed+name+" "+text)
		}
	}
	sort.Strings(lines)
	return lines
}

func differences(newer, older table) []string {
	lines := entries(newer.kinds, older.kinds, "-kind ", "kind ")
	var blocks []string
	for name := range newer.types {
		if _, ok := older.types[name]; !ok {
			blocks = append(blocks, "-type "+name)
		}
	}
	for name, fields := range older.types {
		known, ok := newer.types[name]
		block := entries(known, fields, " -", " ")
		if !ok || len(block) > 0 {
			blocks = append(blocks, strings.Join(append([]string{"type " + name}, block...), "\n"))
		}
	}
	sort.Strings(blocks)
	return append(lines, blocks...)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for at := 2; at < len(os.Args); at++ {
		fmt.Fprintf(out, "release %s\n", filepath.Base(os.Args[at]))
		for _, line := range differences(read(os.Args[at-1]), read(os.Args[at])) {
			fmt.Fprintln(out, line)
		}
	}
}
