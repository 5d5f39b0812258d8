// Command older has the control plane of an older Kubernetes for the tests.
// etcd and kwok are those of the parent folder. The first argument names the
// program, as there.
//
// Each vN.M.mod has the modules of one Kubernetes:
//
//	go build -modfile=older/v1.33.mod ./older
package main

import (
	"fmt"
	"os"

	"lockkeeper.dev/minicluster/controlplane"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "usage: older PROGRAM [flags], where PROGRAM is one of %s\n", controlplane.Programs)
		os.Exit(2)
	}
	// Each program reads os.Args itself; it must see its own name first.
	os.Args = os.Args[1:]
	controlplane.Run(os.Args[0])
	fmt.Fprintf(os.Stderr, "older: no program %q; one of %s\n", os.Args[0], controlplane.Programs)
	os.Exit(2)
}
