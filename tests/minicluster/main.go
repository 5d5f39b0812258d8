// Command minicluster is the control plane of lockkeeper's end-to-end tests:
// etcd, kube-apiserver and kubectl, each the real thing, in one binary.
//
// The first argument names the program, the rest are that program's own
// flags, so a test starts them just as it would start separate binaries:
//
//	minicluster etcd --data-dir …
//	minicluster kube-apiserver --etcd-servers …
//	minicluster kubectl get ns
package main

import (
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// guardVariable makes a server end with the process that started it: the
// parent holds the write end of standard input, which closes however the
// parent dies.
const guardVariable = "MINICLUSTER_EXIT_WITH_STDIN"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: minicluster etcd|kube-apiserver|kubectl [flags]")
		os.Exit(2)
	}
	// Each program reads os.Args itself; it must see its own name first.
	os.Args = os.Args[1:]
	switch program := os.Args[0]; program {
	case "etcd":
		guard()
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		guard()
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kubectl":
		command := cmd.NewDefaultKubectlCommand()
		if err := cli.RunNoErrOutput(command); err != nil {
			util.CheckErr(err)
		}
	default:
		fmt.Fprintf(os.Stderr, "minicluster: no program %q; one of etcd, kube-apiserver, kubectl\n", program)
		os.Exit(2)
	}
}

func guard() {
	if os.Getenv(guardVariable) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}
