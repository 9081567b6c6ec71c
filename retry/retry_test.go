package retry_test
import "errors"
var errCall = errors.New("call failed")
