// What Node.js makes of expressions: a plain reading of the surface, written without a look at ours.
// In: {"scope": …, "texts": […]}; out: for each text ["value", …], ["absent"] or ["failed"].
const { scope, texts } = JSON.parse(require("fs").readFileSync(0, "utf8"));

function world() {
    const data = JSON.parse(JSON.stringify(scope));
    const agents = {};
    for (const [role, one] of Object.entries(data.agents))
        agents[role] = {
            getLastResponse: () => one.last_response,
            getToolCalls: () => one.tool_calls || [],
            getParsingToolCalls: () => one.parsing_tool_calls || [],
            getRole: () => role,
            getContextRole: () => one.role,
        };
    const names = {
        common_data: data.common_data,
        variables: data.common_data,
        agents,
        contexts: data.contexts,
        sub_workflow_result: data.sub_workflow_result,
        last_agent_response: data.last_agent_response,
        lastAgentResponse: data.last_agent_response,
        last_tool_calls: data.last_tool_calls,
        last_parsing_tool_calls: data.last_parsing_tool_calls,
        getAgent: (role) => agents[role],
        getContext: (name) => data.contexts[name],
        getToolCalls: (role) => (agents[role] ? agents[role].getToolCalls() : []),
    };
    return names;
}

// NaN, infinities, functions and the like cannot be written; Node's own JSON would bend them.
function isPlain(value) {
    if (typeof value === "number") return Number.isFinite(value);
    if (value === null || ["string", "boolean", "undefined"].includes(typeof value)) return true;
    return typeof value === "object" && Object.values(value).every(isPlain);
}

// The half of a pair of code units, which UTF-8 cannot hold, is replaced as everywhere where text leaves JavaScript.
const whole = (value) =>
    JSON.parse(JSON.stringify(value, (_, one) => (typeof one === "string" ? one.toWellFormed() : one)));

const answers = texts.map((text) => {
    const names = world();
    try {
        const value = new Function(...Object.keys(names), `"use strict"; return (${text});`).apply(names, Object.values(names));
        if (value === undefined) return ["absent"];
        return isPlain(value) ? ["value", whole(value)] : ["failed"];
    } catch {
        return ["failed"];
    }
});
console.log(JSON.stringify(answers));
