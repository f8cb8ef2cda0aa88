package redlocktest

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; nothing is secured by it.
	"encoding/hex"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// miniredis opens a Lua interpreter for each script that it runs, which takes most of the time
// of a simulation. A node keeps one instead and runs there the scripts that it has seen, with
// the same Lua and the same commands. What is out of the ordinary stays with miniredis: see
// [process.runsHere] and [plain].

// interpreter runs scripts against one process's data, one at a time.
type interpreter struct {
	state  *lua.LState
	global *lua.LTable
	redis  *miniredis.Miniredis
	server *server.Server

	// The stand-in connection on which scripts call commands.
	peer  *server.Peer
	out   *bufio.Writer
	buf   bytes.Buffer
	reply *bufio.Reader

	done lua.LValue // the answer of a command that says OK

	mu      sync.Mutex
	scripts map[string]*lua.LFunction // by SHA-1
}

// compiled holds every script that was ever compiled, for all interpreters.
var compiled sync.Map // SHA-1 to *lua.FunctionProto

func newInterpreter(m *miniredis.Miniredis) *interpreter {
	in := &interpreter{redis: m, server: m.Server(), scripts: map[string]*lua.LFunction{}}
	in.out = bufio.NewWriter(&in.buf)
	in.reply = bufio.NewReader(&in.buf)
	in.peer = server.NewPeer(in.out)
	in.peer.Ctx = nested()
	return in
}

// nested returns what miniredis attaches to a connection on which a script calls commands: it
// says that the lock is already held. It has no constructor, so a script is run to see one.
var nested = sync.OnceValue(func() any {
	m := miniredis.NewMiniRedis()
	conn, err := m.Dial()
	if err != nil {
		panic("redlocktest: miniredis did not start, which without a listener it always does: " + err.Error())
	}
	_ = conn.Close()
	defer m.Close()
	var ctx any
	m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd == "GET" {
			ctx = c.Ctx
		}
		return false
	})
	m.Server().Dispatch(server.NewPeer(bufio.NewWriter(io.Discard)), []string{"EVAL", "return redis.call('GET', 'x')", "0"})
	return ctx
})

// plain tells whether a script uses nothing but what the interpreter offers.
func plain(src string) bool {
	for _, word := range []string{
		"cjson", "cmsgpack", "bit", "struct", "os.", "coroutine", "debug", "require", "module",
		"load", "dofile", "print", "newproxy", "setfenv", "getfenv", "_G", "rawset", "setmetatable",
		"collectgarbage", "math.random", "server.", "redis.log", "redis.set", "redis.repl", "redis.acl", "redis.sha", "redis.breakpoint",
	} {
		if strings.Contains(src, word) {
			return false
		}
	}
	return true
}

// learn keeps a script that the process was sent.
func (in *interpreter) learn(src string) {
	if !plain(src) {
		return
	}
	sum := sha1.Sum([]byte(src)) //nolint:gosec // see the import
	sha := hex.EncodeToString(sum[:])
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, known := in.scripts[sha]; known {
		return
	}
	proto, ok := compiled.Load(sha)
	if !ok {
		chunk, err := parse.Parse(strings.NewReader(src), "user_script")
		if err != nil {
			return // miniredis says what is wrong with it
		}
		main, err := lua.Compile(chunk, "user_script")
		if err != nil {
			return
		}
		main.IsVarArg &^= lua.VarArgNeedsArg // no table "arg" for each run; in Lua 5.1 a chunk has none
		compiled.Store(sha, main)
		proto = main
	}
	if in.state == nil {
		in.open()
	}
	in.scripts[sha] = in.state.NewFunctionFromProto(proto.(*lua.FunctionProto))
}

// forget drops all scripts, as SCRIPT FLUSH does.
func (in *interpreter) forget() {
	in.mu.Lock()
	defer in.mu.Unlock()
	clear(in.scripts)
}

func (in *interpreter) open() {
	l := lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: 64, RegistrySize: 256, RegistryMaxSize: 1 << 20, RegistryGrowStep: 256})
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
		lua.StringLibName: lua.OpenString, lua.MathLibName: lua.OpenMath,
	} {
		l.Push(l.NewFunction(open))
		l.Push(lua.LString(name))
		l.Call(1, 0)
	}
	redis := l.NewTable()
	redis.RawSetString("call", l.NewFunction(in.call))
	redis.RawSetString("pcall", l.NewFunction(in.pcall))
	redis.RawSetString("error_reply", l.NewFunction(reply("err")))
	redis.RawSetString("status_reply", l.NewFunction(reply("ok")))
	in.state, in.global = l, l.G.Global
	in.global.RawSetString("redis", redis)
	in.done = fromRedis(l, server.Simple("OK"))

	// Scripts must not leave anything behind for one another.
	strict := l.NewTable()
	strict.RawSetString("__newindex", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError("Script attempted to create global variable '%s'", l.ToString(2))
		return 0
	}))
	strict.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError("Script attempted to access nonexistent global variable '%s'", l.ToString(2))
		return 0
	}))
	in.global.Metatable = strict
}

// reply is redis.status_reply or redis.error_reply.
func reply(kind string) lua.LGFunction {
	return func(l *lua.LState) int {
		text := l.CheckString(1)
		if kind == "err" {
			text = strings.TrimPrefix(text, "-")
			if !strings.Contains(text, " ") {
				text = "ERR " + text
			}
		}
		t := l.NewTable()
		t.RawSetString(kind, lua.LString(text))
		l.Push(t)
		return 1
	}
}

// run answers an EVALSHA with these arguments, SHA-1 first. It returns false, and has done
// nothing, where miniredis has to: the script is not known here, or the arguments are wrong.
func (in *interpreter) run(c *server.Peer, args []string) bool {
	if len(args) < 2 {
		return false
	}
	count, err := strconv.Atoi(args[1])
	if err != nil || count < 0 || count > len(args)-2 {
		return false
	}
	in.redis.Lock() // as miniredis holds it throughout a script
	defer in.redis.Unlock()
	in.mu.Lock()
	script := in.scripts[strings.ToLower(args[0])]
	in.mu.Unlock()
	if script == nil {
		return false
	}
	l := in.state
	in.global.RawSetString("KEYS", list(l, args[2:2+count]))
	in.global.RawSetString("ARGV", list(l, args[2+count:]))
	l.Push(script)
	if err := l.PCall(0, 1, nil); err != nil {
		l.SetTop(0)
		c.WriteError(scriptError(err))
		return true
	}
	answer := l.Get(-1)
	l.SetTop(0)
	write(c, answer)
	return true
}

// scriptError is how a failed script is answered.
func scriptError(err error) string {
	var text string
	if failed, ok := err.(*lua.ApiError); ok { //nolint:errorlint // PCall returns nothing else
		text = failed.Object.String()
		if t, ok := failed.Object.(*lua.LTable); ok {
			text = t.RawGetString("err").String()
		}
	} else {
		text = err.Error()
	}
	text, _, _ = strings.Cut(text, "\n")
	return "ERR " + strings.TrimPrefix(text, "ERR ")
}

func list(l *lua.LState, values []string) *lua.LTable {
	t := l.CreateTable(len(values), 0)
	for _, v := range values {
		t.Append(lua.LString(v))
	}
	return t
}

// call is redis.call: what fails ends the script.
func (in *interpreter) call(l *lua.LState) int {
	v, err := in.command(l)
	if err != "" {
		l.Error(lua.LString(err), 1)
		return 0
	}
	l.Push(v)
	return 1
}

// pcall is redis.pcall: what fails is a value.
func (in *interpreter) pcall(l *lua.LState) int {
	v, err := in.command(l)
	if err != "" {
		t := l.NewTable()
		t.RawSetString("err", lua.LString(err))
		v = t
	}
	l.Push(v)
	return 1
}

func (in *interpreter) command(l *lua.LState) (v lua.LValue, failure string) {
	n := l.GetTop()
	if n == 0 {
		return nil, "ERR Please specify at least one argument for this redis.call() call"
	}
	args := make([]string, n)
	for i := range args {
		switch a := l.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(a)
		case lua.LNumber:
			args[i] = a.String()
		default:
			return nil, "ERR Lua redis lib command arguments must be strings or integers"
		}
	}
	in.buf.Reset()
	in.reply.Reset(&in.buf)
	in.server.Dispatch(in.peer, args)
	in.peer.Flush()
	r, err := server.ParseReply(in.reply)
	if err != nil {
		return nil, err.Error()
	}
	if r == server.Simple("OK") {
		return in.done, "" // nearly all there is of its kind; no script changes what it is answered
	}
	return fromRedis(l, r), ""
}

// fromRedis turns a command's reply into Lua, by the rules of Redis.
func fromRedis(l *lua.LState, r any) lua.LValue {
	switch r := r.(type) {
	case nil:
		return lua.LFalse
	case int:
		return lua.LNumber(r)
	case int64:
		return lua.LNumber(r)
	case string:
		return lua.LString(r)
	case []byte:
		return lua.LString(r)
	case server.Simple:
		t := l.NewTable()
		t.RawSetString("ok", lua.LString(r))
		return t
	case []any:
		t := l.CreateTable(len(r), 0)
		for _, e := range r {
			t.Append(fromRedis(l, e))
		}
		return t
	}
	return lua.LFalse
}

// write turns a script's result into its answer, by the rules of Redis.
func write(c *server.Peer, v lua.LValue) {
	switch v := v.(type) {
	case lua.LBool:
		if v {
			c.WriteInt(1)
		} else {
			c.WriteNull()
		}
	case lua.LNumber:
		c.WriteInt(int(v))
	case lua.LString:
		c.WriteBulk(string(v))
	case *lua.LTable:
		if s, ok := v.RawGetString("err").(lua.LString); ok {
			c.WriteError(string(s))
			return
		}
		if s, ok := v.RawGetString("ok").(lua.LString); ok {
			c.WriteInline(string(s))
			return
		}
		n := 0
		for v.RawGetInt(n+1) != lua.LNil { // up to the first nil
			n++
		}
		c.WriteLen(n)
		for i := range n {
			write(c, v.RawGetInt(i+1))
		}
	default:
		c.WriteNull()
	}
}
