BEGIN IMMEDIATE;
SELECT 'version' AS tag, data_version FROM pragma_data_version;
