// What conditions, scripts and inputs of workflow files see: names over plain data, in a fresh context for each text.
//
// The value of this file is a function that evaluates one text; `writer` is the value of workflow_writer.js. What both
// need of the engine they take before the text runs, and afterwards they walk by index, join by `+` and make objects by
// literals only: a text that changes prototypes, iterators or JSON changes nothing in how it is answered. All this is
// compiled for every text, and compiling is most of what a text costs: hence two files, and few words.
//
// - Code is strict and is never made from text, except by `evaluateExpression`. `Date` and `Math.random` came in.
// - Data is frozen, except `common_data` while a script runs. A write that would be lost is an error that says so.
// - The answer is one line of JSON: {"value": …}, {} for undefined, or {"failed": …}; for a condition also "holds",
//   and for an input that is no expression {"is_text": true}.
(() => {
    "use strict";
    const LOOKUP = "__parsing_tool_call";
    const SHORTHAND = /\b(?:this\s*\.\s*)?function\s*\.\s*([A-Za-z_$][\w$]*)/g;
    const READ_ONLY = /read-only|not extensible|no setter|could not delete|not configurable/;
    const ALLOWED = (
        "Object Error EvalError RangeError ReferenceError SyntaxError TypeError URIError AggregateError Iterator Array " +
        "parseInt parseFloat isNaN isFinite decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape " +
        "Infinity NaN undefined Number Boolean String Math Reflect Symbol globalThis BigInt RegExp JSON Proxy Map Set " +
        "WeakMap WeakSet ArrayBuffer Uint8ClampedArray Int8Array Uint8Array Int16Array Uint16Array Int32Array " +
        "Uint32Array BigInt64Array BigUint64Array Float32Array Float64Array DataView Promise btoa atob"
    ).split(" ");

    const { keys, freeze, hasOwn, isExtensible, preventExtensions, defineProperty } = Object;
    const { getOwnPropertyNames, getPrototypeOf } = Object;
    const { apply, construct } = Reflect;
    const { parse, stringify } = JSON;
    const { imul } = Math;
    const { isFinite } = Number;
    const [run, RealDate, RealFunction, text] = [eval, Date, Function, String];
    const [WrongSyntax, WrongType, ThePromise] = [SyntaxError.prototype, TypeError, Promise.prototype];
    const { call } = RealFunction.prototype;
    const method = (one) => apply(call.bind, call, [one]);
    const tagOf = method(Object.prototype.toString);
    const isAbove = method(Object.prototype.isPrototypeOf);
    const wellFormed = method(String.prototype.toWellFormed);
    const slice = method(String.prototype.slice);
    const replace = method(String.prototype.replace);
    const match = method(RegExp.prototype.exec);

    // Our own refusals are thrown as this mark; their words are kept beside it, where no text can reach them.
    const REFUSED = { __proto__: null };
    let words = "";
    function refuse(why) {
        words = why;
        throw REFUSED;
    }

    // ── the world that a text finds ──────────────────────────────────────────────────────────────────────────────────

    function settle(now, seed) {
        const allowed = { __proto__: null };
        for (const name of ALLOWED) allowed[name] = true;
        for (const name of getOwnPropertyNames(globalThis)) if (!allowed[name]) delete globalThis[name];
        delete Error.prepareStackTrace;
        noCodeFromText();
        fixTime(now);
        let state = seed;
        define(Math, "random", () => {
            state = (state + 0x6d2b79f5) | 0;
            let mixed = imul(state ^ (state >>> 15), 1 | state);
            mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
            return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
        });
    }

    function define(target, name, value, enumerable = false) {
        defineProperty(target, name, { __proto__: null, value, enumerable, writable: true, configurable: true });
    }

    function noCodeFromText() {
        function Function() {
            throw new WrongType("code cannot be made from text here");
        }
        Function.prototype = RealFunction.prototype;
        for (const one of [() => 0, function* () {}, async () => 0, async function* () {}])
            define(getPrototypeOf(one), "constructor", Function);
        define(globalThis, "Function", Function);
    }

    function fixTime(now) {
        function Date(...given) {
            if (!new.target) return new RealDate(now).toString();
            return construct(RealDate, given.length ? given : [now], new.target);
        }
        Date.prototype = RealDate.prototype;
        define(Date, "now", () => now);
        define(Date, "parse", RealDate.parse);
        define(Date, "UTC", RealDate.UTC);
        define(RealDate.prototype, "constructor", Date);
        define(globalThis, "Date", Date);
    }

    // ── the names ────────────────────────────────────────────────────────────────────────────────────────────────────

    function frozen(value) {
        if (typeof value !== "object" || value === null) return value;
        const names = keys(value);
        for (let at = 0; at < names.length; at++) frozen(value[names[at]]);
        return freeze(value);
    }

    function once(make) {
        let made;
        return () => (made ??= { __proto__: null, value: make() }).value;
    }

    // `common_data.variables` is common_data itself, unless there is such a key.
    function withVariables(data) {
        if (isExtensible(data) && !hasOwn(data, "variables"))
            defineProperty(data, "variables", {
                __proto__: null,
                get: () => data,
                set: (value) => define(data, "variables", value, true),
                enumerable: false,
                configurable: true,
            });
        return data;
    }

    // Things by property and by `.get()`; `of` finds one whatever it is called.
    function named(things, make) {
        const [shelf, all, names] = [{ __proto__: null }, {}, keys(things)];
        for (let at = 0; at < names.length; at++) {
            shelf[names[at]] = freeze(make(names[at], frozen(things[names[at]])));
            define(all, names[at], shelf[names[at]], true);
        }
        const of = (name) => shelf[name];
        define(all, "get", of, hasOwn(all, "get"));
        return { __proto__: null, all: freeze(all), of };
    }

    const agent = (role, data) => ({
        getLastResponse: () => data.last_response,
        getToolCalls: () => data.tool_calls ?? freeze([]),
        getParsingToolCalls: () => data.parsing_tool_calls ?? freeze([]),
        getRole: () => role,
        getContextRole: () => data.role,
    });

    const context = (name, data) => ({ messages: freeze([]), ...data, name });

    // `self` is what a text knows as `this`; the same names are global. Only a script may set one, and only common_data.
    function surface(data, isScript) {
        const self = {};
        let common = withVariables(data.common_data);
        if (!isScript) frozen(common);
        const agents = once(() => named(data.agents ?? {}, agent));
        const contexts = once(() => named(data.contexts ?? {}, context));
        const answer = once(() => frozen(data.last_agent_response));
        const calls = once(() => frozen(data.last_parsing_tool_calls ?? []));
        const functions = {
            getAgent: (role) => agents().of(role),
            getContext: (name) => contexts().of(name),
            getToolCalls: (role) => agents().of(role)?.getToolCalls() ?? freeze([]),
            evaluateExpression: (source) => {
                if (typeof source !== "string") return source;
                const program =
                    expression(source) ?? expression(replace(source, SHORTHAND, LOOKUP + '("$1")?.function'));
                return program ? apply(program, self, [self]) : source;
            },
        };
        const names = {
            common_data: () => common,
            variables: () => common,
            agents: () => agents().all,
            contexts: () => contexts().all,
            sub_workflow_result: once(() => frozen(data.sub_workflow_result)),
            last_agent_response: answer,
            lastAgentResponse: answer,
            last_tool_calls: once(() => frozen(data.last_tool_calls ?? [])),
            last_parsing_tool_calls: calls,
        };
        for (const name of keys(functions)) names[name] = () => functions[name];
        for (const name of keys(names)) {
            const set = (value) => {
                if (name !== "common_data" || !isScript) throw new WrongType(name + " is read-only");
                if (tagOf(value) !== "[object Object]") throw new WrongType("common_data must stay an object");
                common = withVariables(value);
            };
            const property = { get: names[name], set, enumerable: true, configurable: false };
            defineProperty(self, name, property);
            defineProperty(globalThis, name, property);
        }
        defineProperty(globalThis, LOOKUP, {
            value: (name) => {
                const all = calls();
                for (let at = 0; at < all.length; at++) if (all[at]?.function?.name === name) return all[at];
            },
        });
        preventExtensions(globalThis);
        return { __proto__: null, self: preventExtensions(self), common: () => common };
    }

    // ── running a text ───────────────────────────────────────────────────────────────────────────────────────────────

    const asExpression = (source) => "return (\n" + source + "\n);";
    const asStatements = (source) => "\n" + source;
    const program = (body) => '(function (executionContext) { "use strict"; ' + body + "\n})";

    // The program of an expression, or nothing where the text is none.
    function expression(source) {
        try {
            return run(program(asExpression(source)));
        } catch (error) {
            if (!isAbove(WrongSyntax, error)) throw error;
        }
    }

    function settled(value) {
        if (typeof value === "object" && value !== null && isAbove(ThePromise, value))
            refuse("it gives a promise, and nothing here waits for one: write it without async");
        return value;
    }

    const applied = (code, self) => settled(apply(code, self, [self]));
    const written = (value, writer) => (value === undefined ? "{}" : '{"value":' + writer(refuse).value(value) + "}");

    const KINDS = {
        condition(asked, world) {
            const value = applied(run(program(asExpression(asked.text))), world.self);
            if (value === undefined) return '{"holds":false}';
            const holds = value ? "true" : "false";
            const isPlain = value === null || (typeof value === "number" && isFinite(value));
            const isShort = typeof value === "string" && value.length <= 100;
            const shown = isShort ? stringify(wellFormed(value)) : isPlain ? stringify(value) : holds;
            return '{"holds":' + holds + ',"value":' + shown + "}";
        },
        expression(asked, world, writer) {
            return written(applied(run(program(asExpression(asked.text))), world.self), writer);
        },
        input(asked, world, writer) {
            const code = expression(asked.text);
            return code ? written(applied(code, world.self), writer) : '{"is_text":true}';
        },
        script(asked, world, writer) {
            const before = writer(refuse).fields(world.common());
            const code = expression(asked.text);
            const value = applied(code ?? run(program(asStatements(asked.text))), world.self);
            if (code && typeof value === "function") applied(value, world.self);
            return '{"value":' + changes(before, writer(refuse).fields(world.common())) + "}";
        },
    };

    // The first statement throws, so that nothing behind it ever runs, whatever a text makes of its surroundings.
    function fault(source, isScript) {
        globalThis.reached = {};
        for (const wrap of isScript ? [asExpression, asStatements] : [asExpression]) {
            try {
                run('"use strict"; throw reached; ' + program(wrap(source)));
            } catch (error) {
                if (error === globalThis.reached) return null;
                words = described(error);
            }
        }
        return words;
    }

    function changes(before, after) {
        let [set, removed] = ["", ""];
        for (let names = keys(after), at = 0; at < names.length; at++)
            if (before[names[at]] !== after[names[at]])
                set += (set && ",") + stringify(names[at]) + ":" + after[names[at]];
        for (let names = keys(before), at = 0; at < names.length; at++)
            if (after[names[at]] === undefined) removed += (removed && ",") + stringify(names[at]);
        return '{"set":{' + set + '},"removed":[' + removed + "]}";
    }

    function described(error) {
        try {
            const isObject = typeof error === "object" && error !== null;
            const said = isObject ? text(error.name) + ": " + text(error.message) : text(error) + " was thrown";
            const isLost = match(READ_ONLY, said) !== null;
            const advice = isLost ? "; only common_data is written back, and only by scripts: change a copy" : "";
            return wellFormed(slice(said, 0, 300)) + advice;
        } catch {
            return "an error that cannot be described";
        }
    }

    // ── the door ─────────────────────────────────────────────────────────────────────────────────────────────────────

    return (question, given, writer) => {
        const asked = parse(question);
        try {
            if (asked.kind === "syntax")
                return stringify({ value: asked.texts.map((one) => fault(one.text, one.is_script)) });
            const data = parse(given);
            data.common_data ??= {};
            for (const { set, removed } of asked.changes) {
                for (const key of keys(set)) define(data.common_data, key, set[key], true);
                for (const key of removed) delete data.common_data[key];
            }
            settle(asked.now, asked.seed);
            return KINDS[asked.kind](asked, surface(data, asked.kind === "script"), writer);
        } catch (error) {
            return '{"failed":' + stringify(error === REFUSED ? words : described(error)) + "}";
        }
    };
})()
