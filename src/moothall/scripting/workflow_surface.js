// What conditions, scripts and inputs of workflow files see: names over plain data, in a fresh context for each text.
//
// The value of this file is a function that evaluates one text; `values` is the value of workflow_values.js, which a
// condition does without. What both need of the engine they take before the text runs, and afterwards they walk by
// index, join by `+` and make objects by literals only: a text that changes prototypes, iterators or JSON changes nothing
// in how it is answered. All this is compiled anew for every text, and that is most of what a text costs: hence few words,
// and `new function`, because the engine reads what stands in brackets twice.
//
// - Code is strict and is never made from text, except by `evaluateExpression`. `Date` and `Math.random` came in.
// - Data is frozen, except `common_data` while a script runs. A write that would be lost is an error that says so.
// - The answer is one line of JSON: {"value": …}, {} for undefined, or {"failed": …}; for a condition also "holds",
//   and for an input that is no expression {"is_text": true}.
new function () {
    "use strict";
    const LOOKUP = "__parsing_tool_call";
    const SHORTHAND = /\b(?:this\s*\.\s*)?function\s*\.\s*([A-Za-z_$][\w$]*)/g;
    const READ_ONLY = /read-only|not extensible|no setter|could not delete|not configurable/;
    const UNWANTED =
        "eval SharedArrayBuffer Atomics WeakRef FinalizationRegistry performance queueMicrotask DOMException " +
        "InternalError SuppressedError DisposableStack AsyncDisposableStack Float16Array";

    const { keys, freeze, hasOwn, preventExtensions, defineProperty, getPrototypeOf } = Object;
    const { apply, construct } = Reflect;
    const { parse, stringify } = JSON;
    const { imul } = Math;
    const { isFinite } = Number;
    const [run, RealDate, RealFunction, text] = [eval, Date, Function, String];
    const [WrongSyntax, WrongType, ThePromise] = [SyntaxError.prototype, TypeError, Promise.prototype];
    const { call } = RealFunction.prototype;
    const method = (one) => call.bind(one);
    const tagOf = method({}.toString);
    const isAbove = method({}.isPrototypeOf);
    const wellFormed = method("".toWellFormed);
    const slice = method("".slice);
    const replace = method("".replace);
    const match = method(READ_ONLY.exec);

    // Our own refusals are thrown as this mark; their words are kept beside it, where no text can reach them.
    const REFUSED = { __proto__: null };
    let words = "";
    function refuse(why) {
        words = why;
        throw REFUSED;
    }

    // ── the world that a text finds ──────────────────────────────────────────────────────────────────────────────────

    function define(target, name, value, enumerable = false) {
        defineProperty(target, name, { __proto__: null, value, enumerable, writable: true, configurable: true });
    }

    function settle(now, seed) {
        for (const name of UNWANTED.split(" ")) delete globalThis[name];
        delete Error.prepareStackTrace;

        function Function() {
            throw new WrongType("code cannot be made from text here");
        }
        Function.prototype = RealFunction.prototype;
        for (const one of [() => 0, function* () {}, async () => 0, async function* () {}])
            define(getPrototypeOf(one), "constructor", Function);
        define(globalThis, "Function", Function);

        function Date(...given) {
            if (!new.target) return new RealDate(now).toString();
            return construct(RealDate, given.length ? given : [now], new.target);
        }
        Date.prototype = RealDate.prototype;
        Date.now = () => now;
        Date.parse = RealDate.parse;
        Date.UTC = RealDate.UTC;
        Date.prototype.constructor = Date;
        define(globalThis, "Date", Date);

        Math.random = () => {
            seed = (seed + 0x6d2b79f5) | 0;
            let mixed = imul(seed ^ (seed >>> 15), 1 | seed);
            mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
            return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
        };
    }

    // ── the names ────────────────────────────────────────────────────────────────────────────────────────────────────

    function frozen(value) {
        if (typeof value !== "object" || value === null) return value;
        for (const name of keys(value)) frozen(value[name]);
        return freeze(value);
    }

    // `common_data.variables` is common_data itself, unless there is such a key.
    function withVariables(data) {
        if (!hasOwn(data, "variables"))
            defineProperty(data, "variables", {
                __proto__: null,
                get: () => data,
                set: (value) => define(data, "variables", value, true),
                configurable: true,
            });
        return data;
    }

    // Things by property, and as a Map has them: get, has, keys, values, size.
    function named(things, make) {
        const all = {};
        for (const name of keys(things)) define(all, name, freeze(make(name, things[name])), true);
        const get = (name) => (hasOwn(all, name) ? all[name] : undefined);
        const names = keys(all);
        const like_a_map = {
            get,
            has: (name) => hasOwn(all, name),
            keys: () => names.slice(),
            values: () => names.map((name) => all[name]),
            size: names.length,
        };
        for (const name of keys(like_a_map)) if (!hasOwn(all, name)) define(all, name, like_a_map[name]);
        return [freeze(all), get];
    }

    const agent = (role, data) => ({
        getLastResponse: () => data.last_response,
        getToolCalls: () => data.tool_calls ?? freeze([]),
        getParsingToolCalls: () => data.parsing_tool_calls ?? freeze([]),
        getRole: () => role,
        getContextRole: () => data.role,
    });

    // `self` is what a text knows as `this`; the same names are global.
    function surface({ common_data, ...data }, isScript) {
        const self = {};
        let common = withVariables(common_data);
        if (!isScript) frozen(common);
        const { sub_workflow_result, last_agent_response } = frozen(data);
        const last_tool_calls = data.last_tool_calls ?? freeze([]);
        const last_parsing_tool_calls = data.last_parsing_tool_calls ?? freeze([]);
        const [agents, getAgent] = named(data.agents ?? {}, agent);
        const [contexts, getContext] = named(data.contexts ?? {}, (name, one) => ({ messages: freeze([]), ...one, name }));
        const names = {
            agents,
            contexts,
            sub_workflow_result,
            last_agent_response,
            lastAgentResponse: last_agent_response,
            last_tool_calls,
            last_parsing_tool_calls,
            getAgent,
            getContext,
            getToolCalls: (role) => getAgent(role)?.getToolCalls() ?? freeze([]),
            evaluateExpression: (source) => {
                if (typeof source !== "string") return source;
                const code = expression(source) ?? expression(replace(source, SHORTHAND, LOOKUP + '("$1")?.function'));
                return code ? apply(code, self, [self]) : source;
            },
        };
        const get = () => common;
        const set = (value) => {
            if (!isScript) throw new WrongType("common_data is read-only");
            if (tagOf(value) !== "[object Object]") throw new WrongType("common_data must stay an object");
            common = withVariables(value);
        };
        for (const place of [self, globalThis]) {
            defineProperty(place, "common_data", { get, set, enumerable: true });
            defineProperty(place, "variables", { get, enumerable: true });
            for (const name of keys(names)) defineProperty(place, name, { value: names[name], enumerable: true });
        }
        defineProperty(globalThis, LOOKUP, {
            value: (name) => {
                for (let at = 0; at < last_parsing_tool_calls.length; at++)
                    if (last_parsing_tool_calls[at]?.function?.name === name) return last_parsing_tool_calls[at];
            },
        });
        preventExtensions(globalThis);
        return { __proto__: null, self: preventExtensions(self), common: get };
    }

    // ── running a text ───────────────────────────────────────────────────────────────────────────────────────────────

    const compiled = (body) => run('(function (executionContext) { "use strict"; ' + body + "\n})");
    const asExpression = (source) => compiled("return (\n" + source + "\n);");

    // The program of an expression, or nothing where the text is none.
    function expression(source) {
        try {
            return asExpression(source);
        } catch (error) {
            if (!isAbove(WrongSyntax, error)) throw error;
        }
    }

    function applied(code, self) {
        const value = apply(code, self, [self]);
        if (typeof value === "object" && value !== null && isAbove(ThePromise, value))
            refuse("it gives a promise, and nothing here waits for one: write it without async");
        return value;
    }

    function condition(value) {
        if (value === undefined) return '{"holds":false}';
        const holds = value ? "true" : "false";
        const isPlain = value === null || (typeof value === "number" && isFinite(value));
        const isShort = typeof value === "string" && value.length <= 100;
        const shown = isPlain ? stringify(value) : isShort ? stringify(wellFormed(value)) : holds;
        return '{"holds":' + holds + ',"value":' + shown + "}";
    }

    function described(error) {
        try {
            if (error === null) return "null"; // what the engine throws as well where not even an error has room
            const { name = "an object was thrown", message } = error ?? {};
            const isObject = typeof error === "object";
            const told = message === undefined ? "" : ": " + text(message);
            const said = isObject ? text(name) + told : text(error) + " was thrown";
            const isLost = match(READ_ONLY, said) !== null;
            const advice = isLost ? "; only common_data is written back, and only by scripts: change a copy" : "";
            return wellFormed(slice(said, 0, 300)) + advice;
        } catch {
            return "an error that cannot be described";
        }
    }

    function evaluated(asked, given, values) {
        try {
            const data = { common_data: {}, ...parse(given) };
            for (const { set, removed } of asked.changes) {
                for (const key of keys(set)) define(data.common_data, key, set[key], true);
                for (const key of removed) delete data.common_data[key];
            }
            settle(asked.now, asked.seed);
            const world = surface(data, asked.kind === "script");
            if (asked.kind === "condition") return condition(applied(asExpression(asked.text), world.self));
            const tools = { __proto__: null, refuse, expression, asExpression, compiled, applied };
            return values[asked.kind](asked.text, world, tools);
        } catch (error) {
            return '{"failed":' + stringify(error === REFUSED ? words : described(error)) + "}";
        }
    }

    // A long sum of strings is kept in pieces, which the other side does not understand; a slice is in one.
    return (question, given, values) => slice(evaluated(parse(question), given, values), 0);
}
