// Serves the webhooks that Kueue's manager registers, without its controllers. The handlers read the review alone, so no
// API server is needed, and the process uses no CPU time between reviews.
//
// tests/bench/kueue/build compiles this file inside Kueue's module, with the versions in Kueue's go.mod.
package main

import (
	"log"
	"os"
	"strconv"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: webhook PORT FOLDER (with tls.crt and tls.key)")
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	// The manager's level without flags.
	ctrl.SetLogger(zap.New(zap.Level(zapcore.InfoLevel)))
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	// No request is sent to this address.
	manager, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme:        scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: os.Args[2]}),
	})
	if err != nil {
		log.Fatal(err)
	}
	if failed, err := webhooks.Setup(manager, nil); err != nil {
		log.Fatalf("webhook of %s: %v", failed, err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
