// Package holdfasthttp puts a pipeline under any http.Client and around any
// http.Handler.
//
//	client := &http.Client{Transport: holdfasthttp.NewTransport(http.DefaultTransport, pipeline)}
//	mux.Handle("/orders/", holdfasthttp.NewHandler(orders, pipeline))
//
// A pipeline that was built for any call is right for HTTP as it stands: both sides
// tell the policies what an answer means (see [Classify]), and the transport tells a
// retry what may be repeated, and how long the server asks to wait.
//
// On the client a refusal is an error, which errors.As finds through the *url.Error of
// http.Client; on the server it is an answer: 429 or 503.
package holdfasthttp
