// How expressions, inputs and scripts are run and what they gave is written: as JSON, like JSON.stringify, but what that
// would drop or bend without a word is refused, no code of the text is asked how to write it (`toJSON`), and size and
// depth are bounded. Undefined is left out of objects. A script gives the keys of common_data that it set or removed.
new function () {
    "use strict";
    const SIZE = 1000000;
    const DEPTH = 100;
    const { keys } = Object;
    const { isArray } = Array;
    const { isFinite } = Number;
    const { stringify } = JSON;
    const { call } = Function.prototype;
    const method = (one) => call.bind(one);
    const tagOf = method({}.toString);
    const wellFormed = method("".toWellFormed);
    const slice = method("".slice);
    const PLAIN = {
        __proto__: null,
        "[object Date]": method(Date.prototype.toISOString),
        "[object Number]": method((0).valueOf),
        "[object String]": method("".valueOf),
        "[object Boolean]": method(true.valueOf),
    };

    function writer(refuse) {
        let size = 0;

        function counted(piece) {
            size += piece.length + 1;
            if (size > SIZE) refuse("it is larger than " + SIZE + " characters of JSON");
            return piece;
        }

        function refused(key, above, what) {
            let way = typeof key === "number" ? "[" + key + "]" : key;
            for (let one = above; one; one = one.above)
                way = (typeof one.key === "number" ? "[" + one.key + "]" : one.key) + (way[0] === "[" ? "" : ".") + way;
            refuse((way.length > 100 ? slice(way, 0, 100) + "…" : way) + " " + what);
        }

        // `above` is the chain of what this value stands in.
        function write(value, key, above) {
            if (typeof value === "string") return counted(stringify(wellFormed(value)));
            if (value === null || typeof value === "boolean") return counted(stringify(value));
            if (typeof value === "number" && isFinite(value)) return counted(stringify(value));
            if (typeof value === "number") refused(key, above, "is " + value + ", which JSON cannot hold");
            if (typeof value !== "object") refused(key, above, "is a " + typeof value + ", which JSON cannot hold");
            for (let one = above; one; one = one.above)
                if (one.value === value) refused(key, above, "holds itself, which JSON cannot");
            const here = { __proto__: null, value, key, above, level: above ? above.level + 1 : 1 };
            if (here.level > DEPTH) refuse("it is nested more than " + DEPTH + " levels deep");
            const tag = tagOf(value);
            if (PLAIN[tag]) return write(PLAIN[tag](value), key, above);
            let inside = counted("");
            if (isArray(value)) {
                for (let at = 0; at < value.length; at++)
                    inside += (at ? "," : "") + write(value[at] ?? null, at, here);
                return "[" + inside + "]";
            }
            if (tag !== "[object Object]")
                refused(key, above, "is a " + slice(tag, 8, -1) + ", which JSON cannot hold");
            for (let names = keys(value), at = 0; at < names.length; at++) {
                const inner = value[names[at]];
                if (inner === undefined) continue;
                const name = counted(stringify(wellFormed(names[at])));
                inside += (inside && ",") + name + ":" + write(inner, names[at], here);
            }
            return "{" + inside + "}";
        }

        // The keys of common_data, each with its value as JSON.
        function fields(data) {
            const texts = { __proto__: null };
            const here = { __proto__: null, value: data, key: "common_data", level: 1 };
            for (let names = keys(data), at = 0; at < names.length; at++) {
                const inner = data[names[at]];
                if (inner !== undefined) texts[counted(wellFormed(names[at]))] = write(inner, names[at], here);
            }
            return texts;
        }

        return { __proto__: null, write, fields };
    }

    const written = (value, { refuse }) =>
        value === undefined ? "{}" : '{"value":' + writer(refuse).write(value, "the value", null) + "}";

    function changes(before, after) {
        let set = "";
        let removed = "";
        for (let names = keys(after), at = 0; at < names.length; at++)
            if (before[names[at]] !== after[names[at]])
                set += (set && ",") + stringify(names[at]) + ":" + after[names[at]];
        for (let names = keys(before), at = 0; at < names.length; at++)
            if (after[names[at]] === undefined) removed += (removed && ",") + stringify(names[at]);
        return '{"value":{"set":{' + set + '},"removed":[' + removed + "]}}";
    }

    return {
        expression: (text, { self }, tools) => written(tools.applied(tools.asExpression(text), self), tools),
        input(text, { self }, tools) {
            const code = tools.expression(text);
            if (!code) return '{"is_text":true}';
            const value = tools.applied(code, self);
            if (value === undefined) tools.refuse("it is undefined: nothing has set it, or its name is misspelt");
            return written(value, tools);
        },
        output(text, { self }, tools) {
            const code = tools.expression(text);
            return code ? written(tools.applied(code, self), tools) : '{"is_text":true}';
        },
        script(text, { self, common }, tools) {
            const before = writer(tools.refuse).fields(common());
            const code = tools.expression(text);
            const value = tools.applied(code ?? tools.compiled("\n" + text), self);
            if (code && typeof value === "function") tools.applied(value, self);
            return changes(before, writer(tools.refuse).fields(common()));
        },
    };
}
