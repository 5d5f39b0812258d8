// A TLS server that drops the body and answers with a constant: the cost of a Go webhook before it
// decides anything. Its cost tells how fast a machine is beside the one that others measured on.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	answer := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true}}`)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})
	if len(os.Args) != 4 {
		log.Fatal("usage: floor ADDRESS CERTIFICATE KEY")
	}
	log.SetOutput(io.Discard)
	err := http.ListenAndServeTLS(os.Args[1], os.Args[2], os.Args[3], nil)
	log.SetOutput(os.Stderr)
	log.Fatal(err)
}
