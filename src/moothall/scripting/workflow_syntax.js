// Says what is wrong with texts without running any of them: for each null, or the fault.
//
// The first statement of every program throws, so that nothing behind it ever runs, whatever a text makes of what it
// is put into. A script may be an expression or statements.
(() => {
    "use strict";
    const run = eval;
    const PARSED = (globalThis.PARSED = {});

    function fault(body) {
        try {
            run('"use strict"; throw PARSED; (function (executionContext) { "use strict"; ' + body + "\n})");
        } catch (error) {
            return error === PARSED ? null : error.name + ": " + error.message;
        }
    }

    return (question) => {
        const faults = JSON.parse(question).texts.map(({ text, is_script }) => {
            const wrong = fault("return (\n" + text + "\n);");
            return wrong && is_script ? fault("\n" + text) : wrong;
        });
        return JSON.stringify({ value: faults });
    };
})()
